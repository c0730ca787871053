// RankTensors: what one rank keeps on its device, and its ops as kernel calls on it.
#pragma once

#include <array>
#include <vector>

#include "core/ring_program.h"
#include "kernels/cuda/runtime.h"
#include "kernels/data.h"

namespace ring::cuda {

/// A contiguous piece of a message.
struct Piece {
  std::byte* data = nullptr;
  Bytes bytes = 0;
};

/// Layouts as in RankMemory (kernels/executor_storage.h), the states as StateView says.
class RankTensors {
 public:
  /// Takes all memory on the device and fills Q, K and V.
  RankTensors(const RingProgram& program, int rank, const DataSource& data, DeviceRuntime& runtime,
              int device);

  /// The kernels of an op that computes, in order. Uploads the key ranges of masked blocks.
  std::vector<KernelCall> calls(const Op& op);
  /// K part, then V part of the tokens that a transfer names, or plain bytes.
  std::array<Piece, 2> pieces(const Op& op) const;
  /// Source and destination of a copy op, which stays within the rank.
  std::pair<Piece, Piece> own_copy(const Op& op) const {
    return {{home_.k, op.bytes}, {home_.v, op.bytes}};
  }
  /// Room for an eager message.
  std::array<Piece, 2> stage(const Op& op);

  /// Output and lse of a row: (head, dim_v) in the model dtype, (head).
  void read_row(int64_t batch, int64_t row, std::span<std::byte> out, std::span<float> lse) const;
  Bytes bytes() const { return bytes_; }
  int device() const { return device_; }

 private:
  struct KvTensors {
    std::byte *k = nullptr, *v = nullptr;
  };
  struct State {
    float *u = nullptr, *m = nullptr, *l = nullptr;
  };

  std::byte* take(Bytes bytes);
  void upload_tensor(const DataSource& data, Tensor tensor, int64_t heads, int64_t dim,
                     std::byte* to);
  void take_plain();
  StateView state_view(int32_t state, const Op& op) const;
  std::vector<KernelCall> attend_calls(const Op& op);
  AttendCall attend_call(const Op& op, int32_t head_begin, int32_t head_end) const;
  const KeyRange* upload_spans(const Op& op);
  const KvTensors& kv(int32_t buffer) const {
    return buffer == kHomeBuffer ? home_ : receive_[static_cast<size_t>(buffer)];
  }

  const RingProgram& program_;
  int rank_;
  DeviceRuntime& runtime_;
  int device_;
  Problem problem_;
  int64_t rows_ = 0;
  Bytes bytes_ = 0;
  std::byte* q_ = nullptr;
  KvTensors home_;
  std::vector<KvTensors> receive_;
  std::vector<State> states_;
  std::byte* out_ = nullptr;
  float* lse_ = nullptr;
};

}  // namespace ring::cuda
