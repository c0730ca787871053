// Reset, finalisation and merging of attention states, compiled once per instruction set.
#include "kernels/cpu/state.h"

#include "kernels/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/state.cpp"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/cpu/pack_inl.h"

HWY_BEFORE_NAMESPACE();
namespace ring::cpu::HWY_NAMESPACE {

// dst = a * dst + b * src over n elements.
HWY_INLINE void blend(float a, float* HWY_RESTRICT dst, float b, const float* HWY_RESTRICT src,
                      int n) {
  const Df df;
  const int step = static_cast<int>(hn::Lanes(df));
  const Vf va = hn::Set(df, a);
  const Vf vb = hn::Set(df, b);
  int i = 0;
  for (; i + step <= n; i += step) {
    const Vf old = hn::Mul(va, hn::LoadU(df, dst + i));
    hn::StoreU(hn::MulAdd(vb, hn::LoadU(df, src + i), old), df, dst + i);
  }
  for (; i < n; ++i) dst[i] = a * dst[i] + b * src[i];
}

// The nearest number with 8 significant bits, ties to even. Highway 1.0 only truncates.
HWY_INLINE Vf round_to_bf16(Vf value) {
  const Df df;
  const hn::RebindToUnsigned<Df> du;
  const auto bits = hn::BitCast(du, value);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1U));
  const auto up = hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7fffU)));
  return hn::BitCast(df, hn::And(up, hn::Set(du, 0xffff0000U)));
}

// The nearest fp16 number, ties to even, as fp32. Highway's software conversion only truncates.
HWY_INLINE Vf round_to_f16(Vf value) {
  const Df df;
  const hn::RebindToUnsigned<Df> du;
  const auto bits = hn::BitCast(du, value);
  const auto odd = hn::And(hn::ShiftRight<13>(bits), hn::Set(du, 1U));
  const auto up = hn::Add(bits, hn::Add(odd, hn::Set(du, 0xfffU)));
  const Vf normal = hn::BitCast(df, hn::And(up, hn::Set(du, 0xffffe000U)));
  // Below 2^-14 the spacing is 2^-24, that of fp32 numbers around 0.75.
  const Vf magic = hn::Set(df, 0.75F);
  const Vf small = hn::Sub(hn::Add(value, magic), magic);
  return hn::IfThenElse(hn::Lt(hn::Abs(value), hn::Set(df, 0x1p-14F)), small, normal);
}

// out = in / divisor, narrowed to the dtype of `out` with round to nearest even.
void Narrow(DType dtype, const float* in, float divisor, int n, void* out) {
  const Df df;
  const hn::Rebind<hwy::bfloat16_t, Df> dbf;
  const hn::Rebind<hwy::float16_t, Df> dhf;
  const int step = static_cast<int>(hn::Lanes(df));
  const Vf by = hn::Set(df, divisor);
  for (int i = 0; i < n; i += step) {
    float padded[hn::MaxLanes(df)] = {};
    const int count = std::min(step, n - i);
    const float* from = in + i;
    if (hn::MaxLanes(df) > 1 && count < step) {
      std::memcpy(padded, from, sizeof(float) * static_cast<size_t>(count));
      from = padded;
    }
    const Vf value = hn::Div(hn::LoadU(df, from), by);
    const auto size = static_cast<size_t>(count);
    switch (dtype) {
      case DType::kF32: {
        alignas(64) float wide[hn::MaxLanes(df)];
        hn::Store(value, df, wide);
        std::memcpy(static_cast<float*>(out) + i, wide, sizeof(float) * size);
        break;
      }
      case DType::kBF16: {
        alignas(64) hwy::bfloat16_t narrow[hn::MaxLanes(df)];
        hn::Store(hn::DemoteTo(dbf, round_to_bf16(value)), dbf, narrow);
        std::memcpy(static_cast<uint16_t*>(out) + i, narrow, sizeof(uint16_t) * size);
        break;
      }
      case DType::kF16: {
        alignas(64) hwy::float16_t narrow[hn::MaxLanes(df)];
        hn::Store(hn::DemoteTo(dhf, round_to_f16(value)), dhf, narrow);
        std::memcpy(static_cast<uint16_t*>(out) + i, narrow, sizeof(uint16_t) * size);
        break;
      }
    }
  }
}

void MergeStates(AttendState dst, AttendState src, int64_t rows, int dim_v) {
  for (int64_t row = 0; row < rows; ++row) {
    if (src.l[row] == 0.0F) continue;
    float* u = dst.u + row * dim_v;
    const float* from = src.u + row * dim_v;
    if (dst.l[row] == 0.0F) {
      std::memcpy(u, from, sizeof(float) * static_cast<size_t>(dim_v));
      dst.m[row] = src.m[row];
      dst.l[row] = src.l[row];
      continue;
    }
    const float top = std::max(dst.m[row], src.m[row]);
    const float keep = std::exp(dst.m[row] - top);
    const float add = std::exp(src.m[row] - top);
    blend(keep, u, add, from, dim_v);
    dst.l[row] = keep * dst.l[row] + add * src.l[row];
    dst.m[row] = top;
  }
}

void MergeOutputs(float* o_a, float* lse_a, const float* o_b, const float* lse_b, int64_t rows,
                  int dim_v) {
  constexpr float kEmpty = -std::numeric_limits<float>::infinity();
  for (int64_t row = 0; row < rows; ++row) {
    if (lse_b[row] == kEmpty) continue;
    float* out = o_a + row * dim_v;
    const float* from = o_b + row * dim_v;
    if (lse_a[row] == kEmpty) {
      std::memcpy(out, from, sizeof(float) * static_cast<size_t>(dim_v));
      lse_a[row] = lse_b[row];
      continue;
    }
    const float top = std::max(lse_a[row], lse_b[row]);
    const float keep = std::exp(lse_a[row] - top);
    const float add = std::exp(lse_b[row] - top);
    const float sum = keep + add;
    blend(keep / sum, out, add / sum, from, dim_v);
    lse_a[row] = top + std::log(sum);
  }
}

}  // namespace ring::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ring::cpu {

HWY_EXPORT(Narrow);
HWY_EXPORT(MergeStates);
HWY_EXPORT(MergeOutputs);

void narrow_divided(DType dtype, const float* in, float divisor, int n, void* out) {
  HWY_DYNAMIC_DISPATCH(Narrow)(dtype, in, divisor, n, out);
}

void merge_state(AttendState dst, AttendState src, int64_t rows, int dim_v) {
  HWY_DYNAMIC_DISPATCH(MergeStates)(dst, src, rows, dim_v);
}

void merge_output(float* o_a, float* lse_a, const float* o_b, const float* lse_b, int64_t rows,
                  int dim_v) {
  HWY_DYNAMIC_DISPATCH(MergeOutputs)(o_a, lse_a, o_b, lse_b, rows, dim_v);
}

void reset_state(AttendState state, int64_t rows, int dim_v) {
  std::fill_n(state.u, rows * dim_v, 0.0F);
  std::fill_n(state.m, rows, -std::numeric_limits<float>::infinity());
  std::fill_n(state.l, rows, 0.0F);
}

void normalize_state(AttendState state, int64_t rows, int dim_v) {
  for (int64_t row = 0; row < rows; ++row) {
    if (state.l[row] == 0.0F) continue;
    narrow_divided(DType::kF32, state.u + row * dim_v, state.l[row], dim_v, state.u + row * dim_v);
    state.m[row] += std::log(state.l[row]);
    state.l[row] = 1;
  }
}

void finalize(const AttendShape& shape, AttendState state, View out, float* lse) {
  const int64_t size = size_bytes(shape.dtype);
  for (int64_t head = 0; head < shape.heads; ++head) {
    for (int64_t row = 0; row < shape.q_rows; ++row) {
      const int64_t at = head * shape.q_rows + row;
      const bool empty = state.l[at] == 0.0F;
      auto* to = static_cast<std::byte*>(out.data) +
                 (row * out.token_stride + head * out.head_stride) * size;
      if (empty) {
        std::memset(to, 0, static_cast<size_t>(shape.dim_v * size));
      } else {
        narrow_divided(shape.dtype, state.u + at * shape.dim_v, state.l[at], shape.dim_v, to);
      }
      if (lse == nullptr) continue;
      lse[at] =
          empty ? -std::numeric_limits<float>::infinity() : state.m[at] + std::log(state.l[at]);
    }
  }
}

}  // namespace ring::cpu
#endif
