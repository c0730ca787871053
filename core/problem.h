// Problem: the attention that is to be computed, whoever computes it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/dtype.h"
#include "core/mask.h"
#include "core/units.h"

namespace ring {

enum class Pass { kForward, kForwardBackward, kBackward };
std::string_view name(Pass pass);
Pass parse_pass(std::string_view text);
constexpr bool has_forward(Pass pass) { return pass != Pass::kBackward; }
constexpr bool has_backward(Pass pass) { return pass != Pass::kForward; }

/// Shapes: Q (batch, token, heads, head_dim), K (batch, token, kv_heads, head_dim),
/// V (batch, token, kv_heads, head_dim_v), output (batch, token, heads, head_dim_v).
struct Problem {
  int64_t batch = 1;
  int64_t heads = 8;
  int64_t kv_heads = 8;
  int64_t head_dim = 128;
  int64_t head_dim_v = 128;
  Mask mask = Mask::causal(1);  ///< Also carries the sequence length.
  DType dtype = DType::kF32;
  Pass pass = Pass::kForward;
  double scale = 0;  ///< Factor of the scores; 0 means 1 / sqrt(head_dim).

  int64_t seq_len() const { return mask.seq_len(); }
  float softmax_scale() const;
  /// K plus V of `tokens` tokens, all batches and KV heads, in the model dtype.
  Bytes kv_bytes(Tokens tokens) const;
  /// 2 * (head_dim + head_dim_v) * heads * batch per visible (query, key) pair.
  Flops flops(int64_t visible_pairs) const;
  /// The same of the backward pass, which computes five products per pair (the scores again, dP,
  /// dV, dQ, dK): 2 * (3 head_dim + 2 head_dim_v) * heads * batch.
  Flops backward_flops(int64_t visible_pairs) const;
  /// Q, dO (model dtype), lse and delta (fp32) of `tokens` query rows, all batches and heads.
  Bytes query_side_bytes(Tokens tokens) const;
  /// dQ of `tokens` query rows, or dK and dV of `tokens` keys, fp32.
  Bytes query_gradient_bytes(Tokens tokens) const;
  Bytes key_gradient_bytes(Tokens tokens) const;
};

/// Throws Error(kUsage) for zero or negative sizes, kv_heads that do not divide heads, head dims
/// over 256, or sizes whose counts leave 64 bits.
void validate(const Problem& problem);

}  // namespace ring
