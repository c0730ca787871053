// The oracle: plain softmax attention and its gradients in fp64, sharing no code with the kernels.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/dtype.h"

namespace ring::reference {

// A (token, head, dim) tensor as stored. Strides in elements; dim is contiguous.
struct Tensor {
  const void* data = nullptr;
  DType dtype = DType::kF32;
  int64_t token_stride = 0;
  int64_t head_stride = 0;

  double at(int64_t token, int64_t head, int64_t dim) const;
};

struct Problem {
  int64_t q_rows = 0, kv_rows = 0;
  int heads = 1, kv_heads = 1;
  int dim_qk = 0, dim_v = 0;
  double scale = 1.0;
  Tensor q, k, v;
  // Whether query row `row` sees key `key`; empty: every row sees every key.
  std::function<bool(int64_t row, int64_t key)> visible;
};

// Of the rows asked for, in that order: out (head, row, dim_v), lse (head, row) natural log.
// A row that sees no key has out 0 and lse -inf.
struct Output {
  std::vector<double> out, lse;
};

// One softmax over all keys per row.
Output attend(const Problem& problem);
Output attend_rows(const Problem& problem, std::span<const int64_t> rows);

// dq (head, row, dim_qk), dk (kv_head, key, dim_qk), dv (kv_head, key, dim_v).
struct Gradients {
  std::vector<double> dq, dk, dv;
};

// Gradients of sum(out * d_out); d_out (q_rows, heads, dim_v).
Gradients attend_backward(const Problem& problem, const Tensor& d_out);

// dq of the given rows alone: (head, row, dim_qk).
std::vector<double> query_gradients(const Problem& problem, const Tensor& d_out,
                                    std::span<const int64_t> rows);

// dk (kv_head, key, dim_qk) and dv (kv_head, key, dim_v) of the given keys alone, from the lse
// (head, row) of all rows and delta = sum out * d_out (head, row): a row costs as much as keys are
// asked for.
Gradients key_gradients(const Problem& problem, const Tensor& d_out, std::span<const double> lse,
                        std::span<const double> delta, std::span<const int64_t> keys);

// The value of a stored element.
double bf16_value(uint16_t bits);
double f16_value(uint16_t bits);
// The nearest bf16 / fp16 number, ties to even.
uint16_t bf16_bits(double value);
uint16_t f16_bits(double value);

}  // namespace ring::reference
