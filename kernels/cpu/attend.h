// Block attention on the CPU: continues an online-softmax state with one block of keys.
#pragma once

#include <cstdint>

#include "core/dtype.h"
#include "kernels/cpu/workspace.h"

namespace ring::cpu {

// A read-only (token, head, dim) tensor. Strides in elements of the dtype; dim is contiguous.
struct ConstView {
  const void* data = nullptr;
  int64_t token_stride = 0;
  int64_t head_stride = 0;
};

// As ConstView, writable.
struct View {
  void* data = nullptr;
  int64_t token_stride = 0;
  int64_t head_stride = 0;
};

// The state of every query row, fp32, contiguous.
//   m (head, row)         running maximum of the scaled scores, natural units; -inf before any key
//   l (head, row)         sum of exp(s - m)
//   u (head, row, dim_v)  sum of exp(s - m) v
// A row that has seen no key is exactly u = 0, m = -inf, l = 0.
struct AttendState {
  float* u = nullptr;
  float* m = nullptr;
  float* l = nullptr;
};

// Sizes of one block. Query head h reads KV head h / (heads / kv_heads).
struct AttendShape {
  int64_t q_rows = 0;
  int64_t kv_rows = 0;
  int heads = 1;
  int kv_heads = 1;
  int dim_qk = 0;
  int dim_v = 0;
  DType dtype = DType::kF32;
  float scale = 1.0F;  // score = scale * (q . k)
};

// The keys [begin, end) that one query row sees, within [0, kv_rows); none if begin >= end.
struct KeySpan {
  int32_t begin = 0;
  int32_t end = 0;
};

inline constexpr int kMaxHeadDim = 256;

// Throws ring::Error when no kernel can run `shape`: a negative size, heads that do not divide, a
// head dim outside [1, 256], a scale that is not finite, more than 2^31 - 1 rows in a block.
void check_shape(const AttendShape& shape);

// Continues `state` with the keys of one block. q (q_rows, heads, dim_qk), k (kv_rows, kv_heads,
// dim_qk), v (kv_rows, kv_heads, dim_v), all in shape.dtype; sums in fp32. `spans` has one entry
// per query row, or is nullptr where every row sees every key. Single-threaded; allocates only
// when `workspace` is smaller than workspace_bytes(shape).
//
// Every row goes through the same operations in the same order whatever tile it falls in, and a
// key it does not see contributes exactly nothing: the result of a row is bitwise independent of
// its position, of the other rows of the call and of how the rows are shared out to threads. It
// does depend on how the keys are cut into calls, unless the cuts are multiples of key_block().
void attend(const AttendShape& shape, ConstView q, ConstView k, ConstView v, const KeySpan* spans,
            AttendState state, Workspace& workspace);

// Keys between two rescalings of the state. Depends on the head dims only.
int key_block(int dim_qk, int dim_v);

// Scratch that attend and attend_backward need at most for `shape` on this machine, in bytes.
int64_t workspace_bytes(const AttendShape& shape, const CacheSizes& caches);

// Sets `rows` rows (heads * q_rows) of the state to "no key seen".
void reset_state(AttendState state, int64_t rows, int dim_v);

// out (q_rows, heads, dim_v) = u / l in shape.dtype, 0 where l == 0; lse (head, row) = m + ln l,
// natural log, fp32, -inf where l == 0. `lse` may be nullptr.
void finalize(const AttendShape& shape, AttendState state, View out, float* lse);

// dst becomes the state of the keys of both. Exact no-op for an empty src.
void merge_state(AttendState dst, AttendState src, int64_t rows, int dim_v);

// (o_a, lse_a) becomes the merge of both, fp32: o (row, dim_v) contiguous, lse (row) natural log.
// With M = max(lse_a, lse_b), w = exp(lse - M): o = (w_a o_a + w_b o_b) / (w_a + w_b),
// lse = M + ln(w_a + w_b). An empty side (lse = -inf) leaves the other as it is, bit by bit.
void merge_output(float* o_a, float* lse_a, const float* o_b, const float* lse_b, int64_t rows,
                  int dim_v);

}  // namespace ring::cpu
