#include "kernels/cuda/host_kernels.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <thread>
#include <vector>

#include "kernels/simt/numbers.h"

namespace ring::cuda {
namespace {

constexpr float kEmpty = -INFINITY;

float element(DType dtype, uint16_t bits) {
  return dtype == DType::kF16 ? simt::widen(simt::F16{}, bits) : simt::widen(simt::Bf16{}, bits);
}

const uint16_t* row_of(const ConstTensor& tensor, int batch, int head, int64_t row) {
  return tensor.data + batch * tensor.batch_stride + head * tensor.head_stride +
         row * tensor.token_stride;
}

int64_t state_row(const StateView& state, int batch, int head, int64_t row) {
  return batch * state.batch_stride + head * state.head_stride + row;
}

/// Calls visit(batch, head, row).
template <class Visit>
void for_rows(int batch, int heads, int64_t rows, const Visit& visit) {
  for (int b = 0; b < batch; ++b) {
    for (int head = 0; head < heads; ++head) {
      for (int64_t row = 0; row < rows; ++row) visit(b, head, row);
    }
  }
}

void reset_row(const StateView& state, int64_t at, int dim) {
  std::fill_n(state.u + at * dim, dim, 0.0F);
  state.m[at] = kEmpty;
  state.l[at] = 0;
}

void attend_row(const AttendCall& call, int batch, int head, int64_t row) {
  const ForwardParams& p = call.params;
  const int64_t at = state_row(p.state, batch, head, row);
  if (p.starts_state != 0) reset_row(p.state, at, call.dim_v);
  const KeyRange span = p.spans == nullptr ? KeyRange{0, p.kv_rows} : p.spans[row];
  const auto kv_head = static_cast<int>(static_cast<uint32_t>(head) * p.group_inverse >> 16);
  const uint16_t* const q = row_of(p.q, batch, head, row);
  float* const u = p.state.u + at * call.dim_v;
  for (int key = span.begin; key < span.end; ++key) {
    const uint16_t* const k = row_of(p.k, batch, kv_head, key);
    const uint16_t* const v = row_of(p.v, batch, kv_head, key);
    float score = 0;
    for (int d = 0; d < call.dim_qk; ++d)
      score += element(call.dtype, q[d]) * element(call.dtype, k[d]);
    score *= p.scale_log2e;
    const float top = std::max(p.state.m[at], score);
    const float keep = std::exp2(p.state.m[at] - top), weight = std::exp2(score - top);
    p.state.m[at] = top;
    p.state.l[at] = p.state.l[at] * keep + weight;
    for (int d = 0; d < call.dim_v; ++d) u[d] = u[d] * keep + weight * element(call.dtype, v[d]);
  }
}

void run(const AttendCall& call) {
  for_rows(call.batch, call.heads, call.params.q_rows,
           [&](int batch, int head, int64_t row) { attend_row(call, batch, head, row); });
}

void run(const FinalizeCall& call) {
  const FinalizeParams& p = call.params;
  for_rows(call.batch, call.heads, p.rows, [&](int batch, int head, int64_t row) {
    const int64_t at = state_row(p.state, batch, head, row);
    const float l = p.state.l[at];
    uint16_t* const out = p.out.data + batch * p.out.batch_stride + row * p.out.token_stride +
                          head * p.out.head_stride;
    for (int d = 0; d < p.dim_v; ++d) {
      const float value = l > 0 ? p.state.u[at * p.dim_v + d] / l : 0.0F;
      out[d] = call.dtype == DType::kF16 ? simt::narrow(simt::F16{}, value)
                                         : simt::narrow(simt::Bf16{}, value);
    }
    if (p.lse != nullptr)
      p.lse[batch * p.lse_batch_stride + head * p.lse_head_stride + row] =
          l > 0 ? p.state.m[at] * 0.693147180559945309F + std::log(l) : kEmpty;
  });
}

void run(const MergeCall& call) {
  const MergeStateParams& p = call.params;
  for_rows(call.batch, call.heads, p.rows, [&](int batch, int head, int64_t row) {
    const int64_t to = state_row(p.to, batch, head, row);
    const int64_t from = state_row(p.from, batch, head, row);
    if (p.from.l[from] == 0) return;
    const float top = std::max(p.to.m[to], p.from.m[from]);
    const float keep = std::exp2(p.to.m[to] - top), add = std::exp2(p.from.m[from] - top);
    for (int d = 0; d < p.dim_v; ++d) {
      float& u = p.to.u[to * p.dim_v + d];
      u = keep * u + add * p.from.u[from * p.dim_v + d];
    }
    p.to.l[to] = keep * p.to.l[to] + add * p.from.l[from];
    p.to.m[to] = top;
  });
}

void run(const ResetCall& call) {
  const ResetStateParams& p = call.params;
  for_rows(call.batch, call.heads, p.rows, [&](int batch, int head, int64_t row) {
    reset_row(p.state, state_row(p.state, batch, head, row), p.dim_v);
  });
}

void run(const NormalizeCall& call) {
  const ResetStateParams& p = call.params;
  for_rows(call.batch, call.heads, p.rows, [&](int batch, int head, int64_t row) {
    const int64_t at = state_row(p.state, batch, head, row);
    const float l = p.state.l[at];
    if (l == 0) return;
    for (int d = 0; d < p.dim_v; ++d) p.state.u[at * p.dim_v + d] /= l;
    p.state.m[at] += std::log2(l);
    p.state.l[at] = 1;
  });
}

void run(const CompleteCall& call) {
  const ResetStateParams& p = call.params;
  for_rows(call.batch, call.heads, p.rows, [&](int batch, int head, int64_t row) {
    const int64_t at = state_row(p.state, batch, head, row);
    p.state.l[at] = p.state.m[at] == kEmpty ? 0.0F : 1.0F;
  });
}

void run(const AddCall& call) {
  const AddParams& p = call.params;
  for (int64_t row = 0; row < p.rows; ++row) {
    for (int64_t i = 0; i < p.count; ++i)
      p.to[row * p.to_stride + i] += p.from[row * p.from_stride + i];
  }
}

void run(const ClearCall& call) {
  if (call.bytes > 0) std::memset(call.data, 0, static_cast<size_t>(call.bytes));
}

void run(const CopyRowsCall& call) {
  for (int64_t row = 0; row < call.rows; ++row)
    std::memcpy(call.to + row * call.to_pitch, call.from + row * call.from_pitch,
                static_cast<size_t>(call.bytes));
}

/// One pair of a row and a key that it sees.
void add_pair(const BackwardCall& call, int batch, int head, int64_t row, int64_t key) {
  const BackwardParams& p = call.params;
  const int kv_head = head / p.group;
  const int64_t at = batch * p.row_batch_stride + head * p.row_head_stride + row * p.row_stride;
  const int64_t key_at =
      batch * p.key_batch_stride + kv_head * p.key_head_stride + key * p.key_stride;
  const uint16_t* const q = row_of(p.q, batch, head, row);
  const uint16_t* const d_out = row_of(p.d_out, batch, head, row);
  const uint16_t* const k = row_of(p.k, batch, kv_head, key);
  const uint16_t* const v = row_of(p.v, batch, kv_head, key);
  const auto value = [&](uint16_t bits) { return element(call.dtype, bits); };
  float score = 0, slope = 0;
  for (int d = 0; d < call.dim_qk; ++d) score += value(q[d]) * value(k[d]);
  for (int d = 0; d < call.dim_v; ++d) slope += value(d_out[d]) * value(v[d]);
  const float weight = std::exp(score * p.scale - p.lse[at]);
  const float step = p.scale * weight * (slope - p.delta[at]);
  for (int d = 0; d < call.dim_qk; ++d) {
    p.dq[at * call.dim_qk + d] += step * value(k[d]);
    p.dk[key_at * call.dim_qk + d] += step * value(q[d]);
  }
  for (int d = 0; d < call.dim_v; ++d) p.dv[key_at * call.dim_v + d] += weight * value(d_out[d]);
}

void run(const BackwardCall& call) {
  const BackwardParams& p = call.params;
  for_rows(call.batch, call.heads, p.q_rows, [&](int batch, int head, int64_t row) {
    const KeyRange span = p.spans == nullptr ? KeyRange{0, p.kv_rows} : p.spans[row];
    const int64_t at = batch * p.row_batch_stride + head * p.row_head_stride + row * p.row_stride;
    if (p.lse[at] == kEmpty) return;
    for (int64_t key = span.begin; key < span.end; ++key) add_pair(call, batch, head, row, key);
  });
}

void run(const DeltaCall& call) {
  const DeltaParams& p = call.params;
  for_rows(call.batch, call.heads, p.rows, [&](int batch, int head, int64_t row) {
    const uint16_t* const out = row_of(p.out, batch, head, row);
    const uint16_t* const d_out = row_of(p.d_out, batch, head, row);
    float sum = 0;
    for (int d = 0; d < p.dim_v; ++d)
      sum += element(call.dtype, out[d]) * element(call.dtype, d_out[d]);
    const int64_t at = batch * p.batch_stride + head * p.head_stride + row * p.row_stride;
    p.delta[at] = sum;
    if (p.lse != nullptr)
      p.lse_copy[at] = p.lse[batch * p.lse_batch_stride + head * p.lse_head_stride + row];
  });
}

void run(const SpinCall& call) {
  std::this_thread::sleep_for(std::chrono::nanoseconds(call.time_ps / 1000));
}

}  // namespace

void run_on_host(const KernelCall& call) {
  std::visit([](const auto& kernel) { run(kernel); }, call);
}

}  // namespace ring::cuda
