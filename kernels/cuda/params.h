// What the GPU kernels are called with: plain values, the same for every runtime.
#pragma once

#include <cstdint>

namespace ring::cuda {

inline constexpr float kLog2e = 1.44269504088896341F;

/// A read-only (batch, token, head, dim) tensor of 16-bit elements. Strides in elements; dim is
/// contiguous; base and strides are multiples of 16 bytes.
struct ConstTensor {
  const uint16_t* data = nullptr;
  int64_t batch_stride = 0;
  int64_t token_stride = 0;
  int64_t head_stride = 0;
};

/// As ConstTensor, writable.
struct MutableTensor {
  uint16_t* data = nullptr;
  int64_t batch_stride = 0;
  int64_t token_stride = 0;
  int64_t head_stride = 0;
};

/// The keys [begin, end) that one query row sees, within the block of keys; none if begin >= end.
struct alignas(8) KeyRange {
  int32_t begin = 0;
  int32_t end = 0;
};

/// The state of query rows on the device, fp32. Strides between heads and batch elements in rows.
///   u (batch, head, row, dim_v)  sum of 2^(s - m) v, unnormalised
///   m (batch, head, row)         running maximum of the scores times log2 e; -inf before any key
///   l (batch, head, row)         sum of 2^(s - m)
/// The maximum is kept in base 2, unlike on the CPU, so that a row that sees nothing keeps its
/// bits. A row that has seen no key is exactly u = 0, m = -inf, l = 0.
struct StateView {
  float* u = nullptr;
  float* m = nullptr;
  float* l = nullptr;
  int64_t batch_stride = 0;
  int64_t head_stride = 0;
};

/// Continues `state` with one block of keys: score = scale * (q . k), softmax in base 2.
struct ForwardParams {
  ConstTensor q, k, v;
  StateView state;
  const KeyRange* spans = nullptr;  ///< (row), or null where every row sees every key.
  int32_t q_rows = 0, kv_rows = 0;
  uint32_t group_inverse = 1 << 16;  ///< Of the query heads that share a KV head (inverse_of).
  float scale_log2e = 1;             ///< scale * log2 e, positive.
  float largest_score = 1;   ///< Raw dot products beyond it, infinity above all, count as it.
  int32_t starts_state = 0;  ///< 1: the state is not read, it begins here.
};

/// Adds one block of keys to dQ, dK and dV: with P = exp(scale q.k - lse) and
/// dS = P (d_out.v - delta): dq += scale dS k, dk += scale dS q, dv += P d_out, dk and dv summed
/// over the query heads of a KV head.
struct BackwardParams {
  ConstTensor q, k, v, d_out;
  const float* lse = nullptr;    ///< (batch, head, row) natural log; -inf where no key is seen.
  const float* delta = nullptr;  ///< (batch, head, row)
  float* dq = nullptr;           ///< (batch, head, row, dim_qk)
  float* dk = nullptr;           ///< (batch, kv_head, key, dim_qk)
  float* dv = nullptr;           ///< (batch, kv_head, key, dim_v)
  /// Of lse, delta and dq, and of dk and dv, in rows of a head; between rows 1 where a head's rows
  /// follow each other, as above.
  int64_t row_batch_stride = 0, row_head_stride = 0, row_stride = 1;
  int64_t key_batch_stride = 0, key_head_stride = 0, key_stride = 1;
  const KeyRange* spans = nullptr;  ///< As in ForwardParams.
  int32_t q_rows = 0, kv_rows = 0;
  int32_t group = 1;  ///< Query heads that share a KV head.
  float scale = 1;
};

/// delta (batch, head, row) = sum over the dim of out * d_out; strides in rows. Where there is an
/// `lse`, it is copied to the places that delta has in its own tensor.
struct DeltaParams {
  ConstTensor out, d_out;
  float* delta = nullptr;
  int64_t batch_stride = 0, head_stride = 0;
  int32_t rows = 0, dim_v = 0;
  int64_t row_stride = 1;
  const float* lse = nullptr;
  int64_t lse_batch_stride = 0, lse_head_stride = 0;  ///< Rows follow each other.
  float* lse_copy = nullptr;
};

/// out (row, dim) = u / l, 0 where no key was seen; lse (batch, head, row) natural log, strides in
/// rows; -inf where no key was seen. `lse` may be null.
struct FinalizeParams {
  StateView state;
  MutableTensor out;
  float* lse = nullptr;
  int32_t rows = 0, dim_v = 0;
  int64_t lse_batch_stride = 0, lse_head_stride = 0;
};

/// `to` becomes the state of the keys of both; no bit of it changes where `from` has seen none.
struct MergeStateParams {
  StateView to, from;
  int32_t rows = 0, dim_v = 0;
};

/// (o, lse) becomes the merge of both, fp32: o (row, dim) contiguous, lse (row) natural log.
struct MergeOutputParams {
  float* to_o = nullptr;
  float* to_lse = nullptr;
  const float* from_o = nullptr;
  const float* from_lse = nullptr;
  int32_t rows = 0, dim_v = 0;
};

/// Rows of a state: emptied; or made partial results, with l = 1 and m the log-sum-exp in base 2,
/// which travel without l; or given their l again after that.
struct ResetStateParams {
  StateView state;
  int32_t rows = 0, dim_v = 0;
};

/// `to` becomes the state of its keys and of those of another kernel's result: out (batch, head,
/// row, dim_v) in the model dtype, lse (batch, head, row) natural log; strides of both in rows.
struct AbsorbParams {
  StateView to;
  const uint16_t* out = nullptr;
  const float* lse = nullptr;
  int64_t batch_stride = 0, head_stride = 0;
  int32_t rows = 0, dim_v = 0;
  int32_t starts_state = 0;  ///< 1: the state is not read, it begins here.
};

/// to += from: rows of `count` elements, a multiple of 8, as many elements apart as the strides
/// say.
struct AddParams {
  float* to = nullptr;
  const float* from = nullptr;
  int64_t count = 0;
  int64_t rows = 1, to_stride = 0, from_stride = 0;
};

/// Between fp32 and 16 bits, `count` elements, a multiple of 8.
struct ConvertParams {
  float* wide = nullptr;
  uint16_t* narrow = nullptr;
  int64_t count = 0;
};

/// A number x with h / group = h * x / 2^16 for every head h that has h * group < 2^16.
constexpr uint32_t inverse_of(int group) {
  return (65536U + static_cast<uint32_t>(group) - 1) / static_cast<uint32_t>(group);
}

/// The largest raw dot product that stays finite when it is scaled.
inline float largest_score(float scale_log2e) {
  return 1.5e38F / (scale_log2e > 1 ? scale_log2e : 1.0F);
}

}  // namespace ring::cuda
