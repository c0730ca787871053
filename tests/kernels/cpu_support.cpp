#include "tests/kernels/cpu_support.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace ring::test {
namespace {

// Half the spacing of numbers near 1 in the dtype: the error of one rounding.
double unit_roundoff(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return 0x1p-24;
    case DType::kBF16:
      return 0x1p-8;
    case DType::kF16:
      return 0x1p-11;
  }
  return 0.0;
}

// What enters the bound of one row: see docs/numerics.md.
struct RowScale {
  double score = 0.0;  // max over seen keys of |scale| sum |q k|
  double value = 0.0;  // max over seen keys of |v|
  int64_t keys = 0;
};

std::vector<double> magnitudes(const reference::Tensor& tensor, int64_t tokens, int heads,
                               int dim) {
  std::vector<double> all;
  for (int64_t head = 0; head < heads; ++head) {
    for (int64_t token = 0; token < tokens; ++token) {
      for (int64_t d = 0; d < dim; ++d) all.push_back(std::fabs(tensor.at(token, head, d)));
    }
  }
  return all;
}

class RowScales {
 public:
  RowScales(const Case& c, const reference::Problem& problem)
      : problem_(problem),
        q_(magnitudes(problem.q, c.shape.q_rows, c.shape.heads, c.shape.dim_qk)),
        k_(magnitudes(problem.k, c.shape.kv_rows, c.shape.kv_heads, c.shape.dim_qk)),
        v_(magnitudes(problem.v, c.shape.kv_rows, c.shape.kv_heads, c.shape.dim_v)) {}

  RowScale of(int64_t head, int64_t row) const {
    RowScale scale;
    const int64_t kv_head = head / (problem_.heads / problem_.kv_heads);
    const double* q = q_.data() + (head * problem_.q_rows + row) * problem_.dim_qk;
    for (int64_t j = 0; j < problem_.kv_rows; ++j) {
      if (problem_.visible && !problem_.visible(row, j)) continue;
      const int64_t at = kv_head * problem_.kv_rows + j;
      double score = 0.0;
      for (int64_t d = 0; d < problem_.dim_qk; ++d) {
        score += q[d] * k_[static_cast<size_t>(at * problem_.dim_qk + d)];
      }
      scale.score = std::max(scale.score, score * std::fabs(problem_.scale));
      const double* v = v_.data() + at * problem_.dim_v;
      scale.value = std::max(scale.value, *std::max_element(v, v + problem_.dim_v));
      ++scale.keys;
    }
    return scale;
  }

 private:
  const reference::Problem& problem_;
  std::vector<double> q_, k_, v_;
};

// Relative error of one softmax weight: score sum, the two constants, the shift, exp2, and the
// sums of at most `keys` terms.
double weight_error(const Case& c, const RowScale& scale) {
  constexpr double kU = 0x1p-24;
  const double score = kU * (c.shape.dim_qk + 8) * scale.score;
  return 2.0 * score + 2.0 * 3e-7 + 2.0 * kU * (static_cast<double>(scale.keys) + 16.0);
}

}  // namespace

Tensor::Tensor(DType dtype, int64_t tokens, int heads, int dim, Layout layout, int64_t gap)
    : dtype_(dtype), tokens_(tokens), heads_(heads), dim_(dim) {
  if (layout == Layout::kTokenMajor) {
    head_stride_ = dim + gap;
    token_stride_ = head_stride_ * heads + gap;
  } else {
    token_stride_ = dim + gap;
    head_stride_ = token_stride_ * std::max<int64_t>(tokens, 1) + gap;
  }
  const int64_t last =
      std::max<int64_t>(tokens - 1, 0) * token_stride_ + (heads - 1) * head_stride_;
  const auto size = static_cast<size_t>(size_bytes(dtype));
  offset_bytes_ = static_cast<size_t>(gap) * size;
  // Exactly as long as the last row: reading past it is for the address sanitizer to find.
  bytes_.resize(offset_bytes_ + static_cast<size_t>(tokens == 0 ? 0 : last + dim) * size);
  std::fill(bytes_.begin(), bytes_.end(), std::byte{0xff});
}

void Tensor::set(int64_t token, int64_t head, int64_t dim, double value) {
  const int64_t index = token * token_stride_ + head * head_stride_ + dim;
  std::byte* at = bytes_.data() + offset_bytes_ + index * size_bytes(dtype_);
  const auto single = static_cast<float>(value);
  const uint16_t half =
      dtype_ == DType::kBF16 ? reference::bf16_bits(value) : reference::f16_bits(value);
  if (dtype_ == DType::kF32) {
    std::memcpy(at, &single, sizeof single);
  } else {
    std::memcpy(at, &half, sizeof half);
  }
}

void Tensor::fill_normal(std::mt19937_64& random, double deviation) {
  std::normal_distribution<double> normal(0.0, deviation);
  for (int64_t token = 0; token < tokens_; ++token) {
    for (int64_t head = 0; head < heads_; ++head) {
      for (int64_t d = 0; d < dim_; ++d) set(token, head, d, normal(random));
    }
  }
}

State::State(const cpu::AttendShape& shape)
    : u(static_cast<size_t>(shape.heads * shape.q_rows * shape.dim_v)),
      m(static_cast<size_t>(shape.heads * shape.q_rows)),
      l(m.size()) {
  cpu::reset_state(view(), shape.heads * shape.q_rows, shape.dim_v);
}

Case::Case(const cpu::AttendShape& s, uint64_t seed, double deviation, Tensor::Layout layout,
           int64_t gap)
    : shape(s),
      q(s.dtype, s.q_rows, s.heads, s.dim_qk, layout, gap),
      k(s.dtype, s.kv_rows, s.kv_heads, s.dim_qk, layout, gap),
      v(s.dtype, s.kv_rows, s.kv_heads, s.dim_v, layout, gap) {
  std::mt19937_64 random(seed);
  q.fill_normal(random, deviation);
  k.fill_normal(random, deviation);
  v.fill_normal(random, deviation);
}

void Case::make_causal(int64_t offset) {
  spans.clear();
  for (int64_t row = 0; row < shape.q_rows; ++row) {
    const int64_t end = std::clamp<int64_t>(row + offset + 1, 0, shape.kv_rows);
    spans.push_back({0, static_cast<int32_t>(end)});
  }
}

void Case::make_random_spans(uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_int_distribution<int32_t> any(0, static_cast<int32_t>(shape.kv_rows));
  spans.clear();
  for (int64_t row = 0; row < shape.q_rows; ++row) spans.push_back({any(random), any(random)});
}

reference::Problem Case::oracle() const {
  reference::Problem problem;
  problem.q_rows = shape.q_rows;
  problem.kv_rows = shape.kv_rows;
  problem.heads = shape.heads;
  problem.kv_heads = shape.kv_heads;
  problem.dim_qk = shape.dim_qk;
  problem.dim_v = shape.dim_v;
  problem.scale = shape.scale;
  problem.q = q.oracle();
  problem.k = k.oracle();
  problem.v = v.oracle();
  if (!spans.empty()) {
    problem.visible = [this](int64_t row, int64_t key) {
      const cpu::KeySpan& span = spans[static_cast<size_t>(row)];
      return span.begin <= key && key < span.end;
    };
  }
  return problem;
}

cpu::AttendShape shape_of(int64_t q_rows, int64_t kv_rows, int heads, int kv_heads, int dim_qk,
                          int dim_v, DType dtype) {
  return {q_rows, kv_rows, heads, kv_heads,
          dim_qk, dim_v,   dtype, static_cast<float>(1.0 / std::sqrt(static_cast<double>(dim_qk)))};
}

cpu::ConstView rows_from(DType dtype, cpu::ConstView view, int64_t first) {
  view.data =
      static_cast<const std::byte*>(view.data) + first * view.token_stride * size_bytes(dtype);
  return view;
}

State run(const Case& c, cpu::Workspace& workspace) {
  State state(c.shape);
  cpu::attend(c.shape, c.q.view(), c.k.view(), c.v.view(), c.span_data(), state.view(), workspace);
  return state;
}

std::optional<std::string> first_error(const Case& c, State& state) {
  const cpu::AttendShape& shape = c.shape;
  Tensor out(shape.dtype, shape.q_rows, shape.heads, shape.dim_v, Tensor::Layout::kHeadMajor, 3);
  std::vector<float> lse(state.m.size());
  cpu::finalize(shape, state.view(), out.writable(), lse.data());
  // Weights are rounded where the products with values are made in bf16.
  const bool rounded = cpu::uses_bf16_products(shape.dtype);
  return first_error(c, out, lse, rounded ? unit_roundoff(DType::kBF16) : 0.0, 0.0);
}

std::optional<std::string> first_error(const Case& c, const Tensor& out,
                                       const std::vector<float>& lse, double weight_rounding,
                                       double least_weight) {
  const cpu::AttendShape& shape = c.shape;
  const reference::Problem problem = c.oracle();
  const reference::Output want = reference::attend(problem);
  const RowScales scales(c, problem);
  const double round_out = unit_roundoff(shape.dtype);
  // Below the smallest normal number the rounding of fp16 is absolute.
  const double least = shape.dtype == DType::kF16 ? 0x1p-25 : 0.0;
  size_t row_at = 0;
  size_t at = 0;
  for (int64_t head = 0; head < shape.heads; ++head) {
    for (int64_t row = 0; row < shape.q_rows; ++row, ++row_at) {
      const RowScale scale = scales.of(head, row);
      const double weight = weight_error(c, scale);
      const double want_lse = want.lse[row_at];
      const double lse_bound = weight + 0x1p-23 * (std::fabs(want_lse) + scale.score + 1.0);
      const bool lse_good = std::isinf(want_lse) ? lse[row_at] == static_cast<float>(want_lse)
                                                 : std::fabs(lse[row_at] - want_lse) <= lse_bound;
      if (!lse_good) {
        return fmt::format("lse of head {} row {}: {} instead of {}, bound {}", head, row,
                           lse[row_at], want_lse, lse_bound);
      }
      for (int64_t d = 0; d < shape.dim_v; ++d, ++at) {
        const double have = out.get(row, head, d);
        const double weights =
            weight + 1.01 * weight_rounding + least_weight * static_cast<double>(scale.keys);
        const double bound =
            weights * scale.value + 1.01 * round_out * std::fabs(want.out[at]) + least;
        if (!(std::fabs(have - want.out[at]) <= bound)) {
          return fmt::format("out of head {} row {} dim {}: {} instead of {}, bound {}", head, row,
                             d, have, want.out[at], bound);
        }
      }
    }
  }
  return std::nullopt;
}

}  // namespace ring::test
