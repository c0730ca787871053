#include "kernels/bench/problem.h"

#include <fmt/format.h>

#include <cmath>
#include <random>

#include "core/error.h"
#include "kernels/cpu/isa.h"
#include "kernels/reference/attention.h"

namespace ring::bench {
namespace {

std::vector<float> normal(int64_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> distribution;
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = distribution(random);
  return values;
}

std::vector<uint16_t> narrowed(const std::vector<float>& wide, DType dtype) {
  std::vector<uint16_t> narrow;
  for (const float value : wide) {
    narrow.push_back(dtype == DType::kBF16 ? reference::bf16_bits(value)
                                           : reference::f16_bits(value));
  }
  return narrow;
}

reference::Problem oracle(const Problem& problem) {
  const cpu::AttendShape& s = problem.shape;
  const auto tensor = [&](const cpu::ConstView& view) {
    return reference::Tensor{view.data, s.dtype, view.token_stride, view.head_stride};
  };
  reference::Problem p;
  p.q_rows = s.q_rows;
  p.kv_rows = s.kv_rows;
  p.heads = s.heads;
  p.kv_heads = s.kv_heads;
  p.dim_qk = s.dim_qk;
  p.dim_v = s.dim_v;
  p.scale = s.scale;
  p.q = tensor(problem.q_view());
  p.k = tensor(problem.k_view());
  p.v = tensor(problem.v_view());
  if (problem.causal()) {
    p.visible = [&problem](int64_t row, int64_t key) {
      return key < problem.spans[static_cast<size_t>(row)].end;
    };
  }
  return p;
}

std::vector<int64_t> sample(int64_t rows) { return {0, rows / 3, rows - 1}; }

// fp32 arithmetic, or products with rounded weights.
double bound_of(const Problem& problem, double fp32) {
  return cpu::uses_bf16_products(problem.shape.dtype) ? 40.0 * fp32 : fp32;
}

void expect_near(double have, double want, double bound, const std::string& who) {
  if (std::fabs(have - want) <= bound) return;
  throw Error(ErrorKind::kWrongResult, fmt::format("{}: {} instead of {}", who, have, want),
              "nothing was timed");
}

}  // namespace

Problem::Problem(const cpu::AttendShape& s, bool is_causal)
    : shape(s),
      q(normal(s.q_rows * s.heads * s.dim_qk, 1)),
      k(normal(s.kv_rows * s.kv_heads * s.dim_qk, 2)),
      v(normal(s.kv_rows * s.kv_heads * s.dim_v, 3)),
      u(static_cast<size_t>(s.heads * s.q_rows * s.dim_v)),
      m(static_cast<size_t>(s.heads * s.q_rows)),
      l(m.size()),
      lse(m.size()) {
  if (s.dtype != DType::kF32) {
    q16 = narrowed(q, s.dtype);
    k16 = narrowed(k, s.dtype);
    v16 = narrowed(v, s.dtype);
  }
  for (int64_t row = 0; is_causal && row < s.q_rows; ++row) {
    spans.push_back({0, static_cast<int32_t>(row + 1)});
  }
}

double Problem::forward_flops() const {
  const double pairs = static_cast<double>(shape.q_rows) * static_cast<double>(shape.kv_rows);
  return (causal() ? 0.5 : 1.0) * 2.0 * pairs * (shape.dim_qk + shape.dim_v) * shape.heads;
}

double Problem::bytes() const {
  const int64_t dims = shape.dim_qk + shape.dim_v;
  return static_cast<double>(dims * size_bytes(shape.dtype) *
                             (shape.q_rows * shape.heads + shape.kv_rows * shape.kv_heads));
}

std::string Problem::name() const {
  const char* dtype = shape.dtype == DType::kF32    ? "fp32"
                      : shape.dtype == DType::kBF16 ? "bf16"
                                                    : "fp16";
  const std::string heads =
      shape.heads == 1 ? "" : fmt::format(" H{}/{}", shape.heads, shape.kv_heads);
  return fmt::format("{} D{} S{}{} {}", dtype, shape.dim_qk, shape.q_rows, heads,
                     causal() ? "causal" : "full");
}

cpu::ConstView Problem::view(const std::vector<float>& wide, const std::vector<uint16_t>& narrow,
                             int heads, int dim) const {
  const void* data = shape.dtype == DType::kF32 ? static_cast<const void*>(wide.data())
                                                : static_cast<const void*>(narrow.data());
  return {data, int64_t{heads} * dim, dim};
}

void Problem::reset() { cpu::reset_state(state(), shape.heads * shape.q_rows, shape.dim_v); }

void Problem::prepare_backward(cpu::Workspace& workspace) {
  d_out = normal(shape.q_rows * shape.heads * shape.dim_v, 4);
  if (shape.dtype != DType::kF32) d_out16 = narrowed(d_out, shape.dtype);
  delta.resize(lse.size());
  dq.resize(q.size());
  dk.resize(k.size());
  dv.resize(v.size());
  reset();
  cpu::attend(shape, q_view(), k_view(), v_view(), span_data(), state(), workspace);
  std::vector<float> out(d_out.size());  // large enough for every dtype
  const int64_t token_stride = int64_t{shape.heads} * shape.dim_v;
  cpu::finalize(shape, state(), {out.data(), token_stride, shape.dim_v}, lse.data());
  cpu::compute_delta(shape, {out.data(), token_stride, shape.dim_v}, d_out_view(), delta.data());
}

cpu::BackwardInput Problem::backward_input() const {
  return {q_view(), k_view(), v_view(), d_out_view(), lse.data(), delta.data()};
}

void expect_rows(const Problem& problem, const std::vector<float>& out, const std::string& who) {
  const std::vector<int64_t> rows = sample(problem.shape.q_rows);
  const reference::Output want = reference::attend_rows(oracle(problem), rows);
  const int dim = problem.shape.dim_v;
  size_t at = 0;
  for (int64_t head = 0; head < problem.shape.heads; ++head) {
    for (const int64_t row : rows) {
      for (int64_t d = 0; d < dim; ++d, ++at) {
        const int64_t index = (head * problem.shape.q_rows + row) * dim + d;
        expect_near(out[static_cast<size_t>(index)], want.out[at], bound_of(problem, 1e-4), who);
      }
    }
  }
}

void expect_forward(Problem& problem) {
  std::vector<float> out(problem.u.size());
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = problem.u[i] / problem.l[i / static_cast<size_t>(problem.shape.dim_v)];
  }
  expect_rows(problem, out, "forward " + problem.name());
}

void expect_backward(const Problem& problem) {
  const std::vector<int64_t> rows = sample(problem.shape.q_rows);
  const int64_t stride = int64_t{problem.shape.heads} * problem.shape.dim_v;
  const reference::Tensor d_out{problem.d_out_view().data, problem.shape.dtype, stride,
                                problem.shape.dim_v};
  const std::vector<double> want = reference::query_gradients(oracle(problem), d_out, rows);
  const int dim = problem.shape.dim_qk;
  size_t at = 0;
  for (int64_t head = 0; head < problem.shape.heads; ++head) {
    for (const int64_t row : rows) {
      for (int64_t d = 0; d < dim; ++d, ++at) {
        const int64_t index = (head * problem.shape.q_rows + row) * dim + d;
        expect_near(problem.dq[static_cast<size_t>(index)], want[at], bound_of(problem, 1e-3),
                    "backward " + problem.name());
      }
    }
  }
}

}  // namespace ring::bench
