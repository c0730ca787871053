// RankTensors: what one rank keeps on its device, and its ops as kernel calls on it.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "core/payload.h"
#include "core/ring_program.h"
#include "kernels/cuda/rank_gradients.h"
#include "kernels/cuda/runtime.h"
#include "kernels/data.h"
#include "kernels/tensor_view.h"

namespace ring::cuda {

/// A contiguous piece of a message.
struct Piece {
  std::byte* data = nullptr;
  Bytes bytes = 0;
};
/// A message has at most so many; the others are empty.
using Pieces = std::array<Piece, 4>;

/// Layouts as in RankMemory (kernels/executor_storage.h), the states as StateView says.
class RankTensors {
 public:
  /// Takes all memory on the device and fills Q, K and V.
  RankTensors(const RingProgram& program, int rank, const DataSource& data, DeviceRuntime& runtime,
              int device);

  /// The kernels of an op that computes, or that make a received message what the op says it is, in
  /// order. Uploads the key ranges of masked blocks.
  std::vector<KernelCall> calls(const Op& op);
  /// The pieces of a message that a transfer names, or plain bytes.
  Pieces pieces(const Op& op) const;
  /// Room for an eager message.
  Pieces stage(const Op& op);

  /// Output of a row: (head, dim_v) in the model dtype.
  void read_row(int64_t batch, int64_t row, std::span<std::byte> out) const;
  /// Log-sum-exp of a row of the op, a finalize that writes it.
  float read_lse(const Op& op, int64_t batch, int64_t head, int64_t row) const;
  /// Puts output (head, dim_v) and lse (head) of a row, of all heads, where a forward pass would:
  /// into an output buffer of `rows` rows, or home.
  void write_output(int32_t buffer, int64_t row, int64_t rows, int64_t batch,
                    std::span<const std::byte> out, std::span<const float> lse);
  /// Gradients of a row of the heads that the buffer has, into those of all heads.
  void read_gradients(Payload payload, int part, int32_t buffer, int64_t batch, int64_t row,
                      std::span<float> all_heads) const;
  Bytes bytes() const { return bytes_; }
  int device() const { return device_; }

 private:
  /// What KvBuffer (kernels/executor_storage.h) says, with lse and delta of a query side apart.
  struct Buffer {
    std::byte *k = nullptr, *v = nullptr;
    float *lse = nullptr, *delta = nullptr;
    Payload payload = Payload::kKeyValue;
    HeadRange query_heads = {};  ///< Of a shaped one.
    Tokens tokens = 0;           ///< Of a shaped one.
  };
  struct State {
    float *u = nullptr, *m = nullptr, *l = nullptr;
    bool is_packed = false;  ///< It has the rows of the op that touches it.
    HeadRange heads = {};
  };
  /// The query side of some rows.
  struct Side {
    TensorView q, d_out;
    float *lse = nullptr, *delta = nullptr;
  };
  /// Where a backward op finds its operands; its first row and key there and in their gradients.
  struct Operands {
    Side side;
    TensorView k, v, dq, dk, dv;
    int64_t q_at = 0, kv_at = 0;
  };

  std::byte* take(Bytes bytes);
  float* take_floats(int64_t count);
  void take_plain();
  void take_home(const RankStorage& storage);
  void take_shaped(const RankStorage& storage);
  void fill(const DataSource& data);
  void fill_tensor(const DataSource& data, Tensor tensor, const TokenRanges& tokens,
                   int64_t all_heads, const TensorView& view);
  void fill_buffer(const DataSource& data, const TokenRanges& tokens, Payload payload,
                   int32_t buffer);
  Buffer shaped_buffer(const BufferShape& shape);
  State state_of(HeadRange heads, Tokens rows, bool is_packed);

  const Buffer& buffer(int32_t index) const {
    return index == kHomeBuffer ? home_ : buffers_[static_cast<size_t>(index)];
  }
  /// Q, output, dO, K (part 0) or V (part 1), dQ, dK (part 0) or dV (part 1) of a buffer or of the
  /// home shard.
  TensorView view(Payload payload, int part, int32_t buffer) const;
  TensorView gradient_view(Payload payload, int part, int32_t buffer) const;
  Side side(int32_t buffer) const;
  /// The tensor from a row and a head on, as kernels take it.
  ConstTensor tensor(const TensorView& view, int64_t row, int64_t head) const;
  StateView state_view(int32_t state, const Op& op, int64_t head) const;
  float* lse_at(const Op& op, int64_t* batch_stride, int64_t* head_stride) const;
  std::vector<KernelCall> attend_calls(const Op& op);
  AttendCall attend_call(const Op& op, int32_t head_begin, int32_t head_end) const;
  std::vector<KernelCall> finalize_calls(const Op& op) const;
  std::vector<KernelCall> copy_calls(const Op& op) const;
  const KeyRange* upload_spans(const Op& op);
  float* sums_at(const TensorView& view, int64_t row, int64_t head) const;
  ClearCall clear_call(const TensorView& view, int64_t at, int64_t count) const;
  Operands operands(const Op& op) const;
  std::vector<KernelCall> backward_calls(const Op& op, const KeyRange* spans) const;
  BackwardCall backward_call(const Op& op, const Operands& at, const KeyRange* spans) const;
  std::vector<KernelCall> delta_calls(const Op& op) const;
  std::vector<KernelCall> add_calls(const Op& op) const;
  Pieces side_pieces(const Op& op) const;

  const RingProgram& program_;
  int rank_;
  DeviceRuntime& runtime_;
  int device_;
  Problem problem_;
  int64_t rows_ = 0;
  int32_t first_shaped_buffer_ = 0;
  Bytes bytes_ = 0;
  std::byte* q_ = nullptr;
  Buffer home_;
  std::vector<Buffer> buffers_;
  std::vector<State> states_;
  std::byte* out_ = nullptr;
  float* lse_ = nullptr;
  std::unique_ptr<RankGradients> gradients_;  ///< Null without a backward pass.
  using Block = std::tuple<int32_t, int64_t, int64_t, int32_t, int64_t, int64_t>;
  std::map<Block, const KeyRange*> spans_;  ///< By rows and keys: the passes share them.
};

}  // namespace ring::cuda
