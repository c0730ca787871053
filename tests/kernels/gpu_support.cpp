#include "tests/kernels/gpu_support.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>

namespace ring::test {
namespace {

constexpr int64_t kGap = 8;  // Elements between rows: they begin at multiples of 16 bytes.

cuda::ConstTensor device_view(const Tensor& tensor) {
  const cpu::ConstView view = tensor.view();
  return {static_cast<const uint16_t*>(view.data), 0, view.token_stride, view.head_stride};
}

simt::GlobalRegion region_of(const Tensor& tensor, int64_t tokens, int heads, int dim) {
  const cpu::ConstView view = tensor.view();
  const int64_t last = (tokens - 1) * view.token_stride + (heads - 1) * view.head_stride + dim;
  return {view.data, tokens == 0 ? 0 : last * 2, false};
}

template <class T>
simt::GlobalRegion region_of(const std::vector<T>& values, bool is_writable) {
  return {values.data(), static_cast<int64_t>(values.size() * sizeof(T)), is_writable};
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace

GpuState::GpuState(const cpu::AttendShape& shape)
    : u(static_cast<size_t>(shape.heads * shape.q_rows * shape.dim_v)),
      m(static_cast<size_t>(shape.heads * shape.q_rows), -std::numeric_limits<float>::infinity()),
      l(m.size()) {}

cuda::StateView GpuState::view(const cpu::AttendShape& shape) {
  return {u.data(), m.data(), l.data(), shape.heads * shape.q_rows, shape.q_rows};
}

bool GpuState::operator==(const GpuState& other) const {
  return same_bits(u, other.u) && same_bits(m, other.m) && same_bits(l, other.l);
}

Case gpu_case(const cpu::AttendShape& shape, uint64_t seed, double deviation) {
  return Case(shape, seed, deviation, Tensor::Layout::kTokenMajor, kGap);
}

ForwardLaunch forward_launch(const Case& c, GpuState& state, bool starts_state, uint64_t seed) {
  static_assert(sizeof(cpu::KeySpan) == sizeof(cuda::KeyRange));
  const cpu::AttendShape& shape = c.shape;
  ForwardLaunch launch;
  cuda::ForwardParams& p = launch.params;
  p.q = device_view(c.q);
  p.k = device_view(c.k);
  p.v = device_view(c.v);
  p.state = state.view(shape);
  p.spans = reinterpret_cast<const cuda::KeyRange*>(c.span_data());
  p.q_rows = static_cast<int32_t>(shape.q_rows);
  p.kv_rows = static_cast<int32_t>(shape.kv_rows);
  p.group_inverse = cuda::inverse_of(shape.heads / shape.kv_heads);
  p.scale_log2e = static_cast<float>(static_cast<double>(shape.scale) * std::numbers::log2e);
  p.largest_score = cuda::largest_score(p.scale_log2e);
  p.starts_state = starts_state ? 1 : 0;
  launch.heads = shape.heads;
  launch.options.seed = seed;
  launch.options.regions = {region_of(c.q, shape.q_rows, shape.heads, shape.dim_qk),
                            region_of(c.k, shape.kv_rows, shape.kv_heads, shape.dim_qk),
                            region_of(c.v, shape.kv_rows, shape.kv_heads, shape.dim_v),
                            region_of(c.spans, false),
                            region_of(state.u, true),
                            region_of(state.m, true),
                            region_of(state.l, true)};
  return launch;
}

std::optional<std::string> first_gpu_error(const Case& c, const GpuState& state) {
  const cpu::AttendShape& shape = c.shape;
  Tensor out(shape.dtype, shape.q_rows, shape.heads, shape.dim_v, Tensor::Layout::kHeadMajor, 0);
  std::vector<float> lse;
  for (int64_t head = 0; head < shape.heads; ++head) {
    for (int64_t row = 0; row < shape.q_rows; ++row) {
      const auto at = static_cast<size_t>(head * shape.q_rows + row);
      const double l = static_cast<double>(state.l[at]), m = static_cast<double>(state.m[at]);
      lse.push_back(static_cast<float>((m + std::log2(l)) * std::numbers::ln2));
      for (int64_t d = 0; d < shape.dim_v; ++d) {
        const float u = state.u[at * static_cast<size_t>(shape.dim_v) + static_cast<size_t>(d)];
        out.set(row, head, d, l == 0 ? static_cast<double>(u) : static_cast<double>(u) / l);
      }
    }
  }
  // P is rounded to the model dtype; small fp16 weights have an absolute error.
  const bool is_half = shape.dtype == DType::kF16;
  return first_error(c, out, lse, is_half ? 0x1p-11 : 0x1p-8, is_half ? 0x1p-25 : 0.0);
}

}  // namespace ring::test
