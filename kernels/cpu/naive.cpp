#include "kernels/cpu/naive.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/data.h"

namespace ring::cpu {
namespace {

// (row, dim) in fp32.
std::vector<float> widened(const AttendShape& shape, ConstView view, int64_t rows, int dim) {
  std::vector<float> values(static_cast<size_t>(rows * dim));
  for (int64_t row = 0; row < rows; ++row) {
    const auto* from = static_cast<const std::byte*>(view.data) +
                       row * view.token_stride * size_bytes(shape.dtype);
    for (int64_t d = 0; d < dim; ++d)
      values[static_cast<size_t>(row * dim + d)] = load_element(shape.dtype, from, d);
  }
  return values;
}

KeySpan span_of(const AttendShape& shape, const KeySpan* spans, int64_t row) {
  return spans == nullptr ? KeySpan{0, static_cast<int32_t>(shape.kv_rows)} : spans[row];
}

// scores (row, key) = scale q k, -inf where masked. Keys lie (dim, key) so that the inner loop runs
// over keys.
void score(const AttendShape& shape, ConstView q, ConstView k, const KeySpan* spans,
           float* scores) {
  const int dim = shape.dim_qk;
  const int64_t keys = shape.kv_rows;
  const std::vector<float> queries = widened(shape, q, shape.q_rows, dim);
  const std::vector<float> by_key = widened(shape, k, keys, dim);
  std::vector<float> by_dim(by_key.size());
  for (int64_t key = 0; key < keys; ++key) {
    for (int64_t d = 0; d < dim; ++d)
      by_dim[static_cast<size_t>(d * keys + key)] = by_key[static_cast<size_t>(key * dim + d)];
  }
  for (int64_t row = 0; row < shape.q_rows; ++row) {
    float* const line = scores + row * keys;
    std::fill_n(line, keys, 0.0F);
    for (int64_t d = 0; d < dim; ++d) {
      const float query = shape.scale * queries[static_cast<size_t>(row * dim + d)];
      const float* const from = by_dim.data() + d * keys;
      for (int64_t key = 0; key < keys; ++key) line[key] += query * from[key];
    }
    const KeySpan span = span_of(shape, spans, row);
    for (int64_t key = 0; key < keys; ++key) {
      if (key < span.begin || key >= span.end) line[key] = -std::numeric_limits<float>::infinity();
    }
  }
}

}  // namespace

void attend_naively(const AttendShape& shape, ConstView q, ConstView k, ConstView v,
                    const KeySpan* spans, AttendState state, float* scores) {
  check_shape(shape);
  const int64_t keys = shape.kv_rows;
  if (keys == 0) return;
  score(shape, q, k, spans, scores);
  for (int64_t row = 0; row < shape.q_rows; ++row) {
    float* const line = scores + row * keys;
    const float top = *std::max_element(line, line + keys);
    if (std::isinf(top)) continue;
    const float peak = std::max(state.m[row], top);
    const float keep = state.l[row] == 0 ? 0 : std::exp(state.m[row] - peak);
    float sum = 0;
    for (int64_t key = 0; key < keys; ++key) {
      line[key] = std::exp(line[key] - peak);
      sum += line[key];
    }
    state.m[row] = peak;
    state.l[row] = keep * state.l[row] + sum;
    for (int d = 0; d < shape.dim_v; ++d) state.u[row * shape.dim_v + d] *= keep;
  }
  const std::vector<float> values = widened(shape, v, keys, shape.dim_v);
  for (int64_t row = 0; row < shape.q_rows; ++row) {
    float* const u = state.u + row * shape.dim_v;
    const KeySpan span = span_of(shape, spans, row);
    if (span.begin >= span.end) continue;
    for (int64_t key = 0; key < keys; ++key) {
      const float weight = scores[row * keys + key];
      const float* const from = values.data() + key * shape.dim_v;
      for (int d = 0; d < shape.dim_v; ++d) u[d] += weight * from[d];
    }
  }
}

namespace {

// weights (row, key) from the scores that lie there; gradients (row, key) = weight (dP - delta).
void score_gradients(const AttendShape& shape, const BackwardInput& input, float* weights,
                     float* gradients) {
  const int64_t keys = shape.kv_rows;
  const int dim = shape.dim_v;
  const std::vector<float> d_out = widened(shape, input.d_out, shape.q_rows, dim);
  const std::vector<float> values = widened(shape, input.v, keys, dim);
  for (int64_t row = 0; row < shape.q_rows; ++row) {
    const float lse = input.lse[row * input.stats.token];
    const float delta = input.delta[row * input.stats.token];
    const float* const d_row = d_out.data() + row * dim;
    for (int64_t key = 0; key < keys; ++key) {
      float& weight = weights[row * keys + key];
      weight = std::isinf(lse) ? 0.0F : std::exp(weight - lse);
      float product = 0;
      for (int d = 0; d < dim; ++d)
        product += d_row[d] * values[static_cast<size_t>(key * dim + d)];
      gradients[row * keys + key] = weight == 0.0F ? 0.0F : weight * (product - delta);
    }
  }
}

// to (row of `by`, dim) += factor * matrix (row, key) times `from`; `transposes` swaps the roles of
// rows and keys.
void add_product(const float* matrix, int64_t rows, int64_t keys, bool transposes,
                 const std::vector<float>& from, int dim, float factor, float* to, int64_t stride) {
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t key = 0; key < keys; ++key) {
      const float weight = factor * matrix[row * keys + key];
      if (weight == 0.0F) continue;
      float* const target = to + (transposes ? key : row) * stride;
      const float* const source = from.data() + (transposes ? row : key) * dim;
      for (int d = 0; d < dim; ++d) target[d] += weight * source[d];
    }
  }
}

}  // namespace

void attend_backward_naively(const AttendShape& shape, const BackwardInput& input,
                             const KeySpan* spans, const BackwardOutput& output, float* scores) {
  check_shape(shape);
  const int64_t rows = shape.q_rows, keys = shape.kv_rows;
  float* const gradients = scores + rows * keys;
  score(shape, input.q, input.k, spans, scores);
  score_gradients(shape, input, scores, gradients);
  add_product(scores, rows, keys, true, widened(shape, input.d_out, rows, shape.dim_v), shape.dim_v,
              1.0F, output.dv, output.v.token);
  add_product(gradients, rows, keys, false, widened(shape, input.k, keys, shape.dim_qk),
              shape.dim_qk, shape.scale, output.dq, output.q.token);
  add_product(gradients, rows, keys, true, widened(shape, input.q, rows, shape.dim_qk),
              shape.dim_qk, shape.scale, output.dk, output.k.token);
}

}  // namespace ring::cpu
