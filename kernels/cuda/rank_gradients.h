// RankGradients: what one rank keeps on its device for the backward pass, and those ops as calls.
#pragma once

#include <array>
#include <functional>
#include <span>
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
/// A message has at most so many; the others are empty.
using Pieces = std::array<Piece, 4>;

/// What the backward pass reads of the forward pass: Q, output and lse of the own rows, and the K
/// and V that the op names.
struct ForwardSide {
  std::byte *q = nullptr, *out = nullptr, *k = nullptr, *v = nullptr;
  float* lse = nullptr;  ///< (batch, head, row)
  int64_t rows = 0;
};

/// Of gradients and of the query side: (token, batch, head, dim), so that runs of tokens are
/// contiguous. Sums are fp32; lse and delta (row, batch, head) of the rows stand apart.
class RankGradients {
 public:
  using Take = std::function<std::byte*(Bytes)>;

  /// Takes its memory by `take`, and fills dO with the values of the tokens.
  RankGradients(const Problem& problem, const RankStorage& storage, const TokenRanges& tokens,
                const DataSource& data, DeviceRuntime& runtime, const Take& take);

  /// Calls of a backward, delta or add op. `spans` as of BackwardParams.
  std::vector<KernelCall> calls(const Op& op, const ForwardSide& forward,
                                const KeyRange* spans) const;
  /// Of a message of query side or gradients; `q` of the own rows.
  Pieces pieces(const Op& op, std::byte* q) const;

  /// dQ (head, head_dim), dK (kv_head, head_dim) and dV (kv_head, head_dim_v) of a token.
  void read_queries(int64_t batch, int64_t row, std::span<float> values) const;
  void read_keys(int64_t batch, int64_t row, std::span<float> values) const;
  void read_values(int64_t batch, int64_t row, std::span<float> values) const;

 private:
  struct QuerySide {
    std::byte *q = nullptr, *d_out = nullptr;
    float *lse = nullptr, *delta = nullptr;
  };
  /// dK and dV, or dQ in `first` alone.
  struct Sums {
    float *first = nullptr, *second = nullptr;
  };
  struct Operands;

  QuerySide query_side(Tokens rows, bool with_q, const Take& take) const;
  Sums key_sums(Tokens tokens, const Take& take) const;
  Operands operands(const Op& op, const ForwardSide& forward) const;
  std::vector<KernelCall> backward_calls(const Op& op, const ForwardSide& forward,
                                         const KeyRange* spans) const;
  std::vector<KernelCall> delta_calls(const Op& op, const ForwardSide& forward) const;
  std::vector<KernelCall> add_calls(const Op& op) const;
  ConstTensor tensor(const std::byte* data, int64_t heads, int64_t dim, int64_t row) const;
  /// Elements of a token: all batch elements and heads.
  int64_t query_width() const { return problem_.batch * problem_.heads; }
  int64_t key_width() const { return problem_.batch * problem_.kv_heads; }

  Problem problem_;
  DeviceRuntime& runtime_;
  int64_t rows_ = 0, home_tokens_ = 0;
  QuerySide home_;  ///< Without Q, which lies with the forward pass.
  std::vector<QuerySide> received_;
  Sums d_keys_;                 ///< Of the own shard.
  float* d_queries_ = nullptr;  ///< Of the own rows.
  std::vector<Sums> sums_;      ///< On their way.
};

}  // namespace ring::cuda
