// Packing of rows into tiles and back, for each Highway target. Included once per target.
#if defined(RING_CPU_PACK_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef RING_CPU_PACK_INL_H
#undef RING_CPU_PACK_INL_H
#else
#define RING_CPU_PACK_INL_H
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "core/dtype.h"
#include "kernels/cpu/attend.h"

HWY_BEFORE_NAMESPACE();
namespace ring::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Df = hn::ScalableTag<float>;
using Vf = hn::Vec<Df>;

// dst[0, n) = the n elements at `src` of the 16-bit type T, widened to fp32.
template <class T>
HWY_INLINE void widen_half(const void* src, int64_t n, float* HWY_RESTRICT dst) {
  const Df df;
  const hn::Rebind<T, Df> dt;
  const auto step = static_cast<int64_t>(hn::Lanes(df));
  const T* from = static_cast<const T*>(src);
  int64_t i = 0;
  for (; i + step <= n; i += step) {
    hn::StoreU(hn::PromoteTo(df, hn::LoadU(dt, from + i)), df, dst + i);
  }
  if (i >= n) return;
  const auto rest = static_cast<size_t>(std::min(n - i, step));
  T tail[hn::MaxLanes(df)] = {};
  float wide[hn::MaxLanes(df)];
  std::memcpy(tail, from + i, rest * sizeof(T));
  hn::StoreU(hn::PromoteTo(df, hn::LoadU(dt, tail)), df, wide);
  std::memcpy(dst + i, wide, rest * sizeof(float));
}

// The row of `dim` elements at element `offset` of `data` as fp32: in place where it is stored so,
// else widened into `scratch`.
HWY_INLINE const float* row_as_float(DType dtype, const void* data, int64_t offset, int dim,
                                     float* scratch) {
  switch (dtype) {
    case DType::kF32:
      return static_cast<const float*>(data) + offset;
    case DType::kBF16:
      widen_half<hwy::bfloat16_t>(static_cast<const hwy::bfloat16_t*>(data) + offset, dim, scratch);
      break;
    case DType::kF16:
      widen_half<hwy::float16_t>(static_cast<const hwy::float16_t*>(data) + offset, dim, scratch);
      break;
  }
  return scratch;
}

#if HWY_TARGET != HWY_SCALAR
// Four vectors of four: out_i[j] = in_j[i].
template <class D4, class V4 = hn::Vec<D4>>
HWY_INLINE void transpose4(D4 d4, V4& r0, V4& r1, V4& r2, V4& r3) {
  const V4 low02 = hn::InterleaveLower(d4, r0, r2);
  const V4 low13 = hn::InterleaveLower(d4, r1, r3);
  const V4 high02 = hn::InterleaveUpper(d4, r0, r2);
  const V4 high13 = hn::InterleaveUpper(d4, r1, r3);
  r0 = hn::InterleaveLower(d4, low02, low13);
  r1 = hn::InterleaveUpper(d4, low02, low13);
  r2 = hn::InterleaveLower(d4, high02, high13);
  r3 = hn::InterleaveUpper(d4, high02, high13);
}
#endif

// dst[d * ld + i] = rows[i][d] for d < dim, i < lanes; lanes is a multiple of 4.
HWY_INLINE void pack_transposed(const float* const* rows, int lanes, int dim,
                                float* HWY_RESTRICT dst, int ld) {
  for (int i = 0; i < lanes; i += 4) {
    int d = 0;
#if HWY_TARGET != HWY_SCALAR
    const hn::FixedTag<float, 4> d4;
    for (; d + 4 <= dim; d += 4) {
      auto r0 = hn::LoadU(d4, rows[i] + d);
      auto r1 = hn::LoadU(d4, rows[i + 1] + d);
      auto r2 = hn::LoadU(d4, rows[i + 2] + d);
      auto r3 = hn::LoadU(d4, rows[i + 3] + d);
      transpose4(d4, r0, r1, r2, r3);
      float* out = dst + d * ld + i;
      hn::StoreU(r0, d4, out);
      hn::StoreU(r1, d4, out + ld);
      hn::StoreU(r2, d4, out + 2 * ld);
      hn::StoreU(r3, d4, out + 3 * ld);
    }
#endif
    for (; d < dim; ++d) {
      for (int j = 0; j < 4; ++j) dst[d * ld + i + j] = rows[i + j][d];
    }
  }
}

// The inverse: rows[i][d] = src[d * ld + i].
HWY_INLINE void unpack_transposed(const float* HWY_RESTRICT src, int ld, int lanes, int dim,
                                  float* const* rows) {
  for (int i = 0; i < lanes; i += 4) {
    int d = 0;
#if HWY_TARGET != HWY_SCALAR
    const hn::FixedTag<float, 4> d4;
    for (; d + 4 <= dim; d += 4) {
      const float* in = src + d * ld + i;
      auto r0 = hn::LoadU(d4, in);
      auto r1 = hn::LoadU(d4, in + ld);
      auto r2 = hn::LoadU(d4, in + 2 * ld);
      auto r3 = hn::LoadU(d4, in + 3 * ld);
      transpose4(d4, r0, r1, r2, r3);
      hn::StoreU(r0, d4, rows[i] + d);
      hn::StoreU(r1, d4, rows[i + 1] + d);
      hn::StoreU(r2, d4, rows[i + 2] + d);
      hn::StoreU(r3, d4, rows[i + 3] + d);
    }
#endif
    for (; d < dim; ++d) {
      for (int j = 0; j < 4; ++j) rows[i + j][d] = src[d * ld + i + j];
    }
  }
}

// Rows of one head of a stored tensor.
struct HeadRows {
  DType dtype;
  const void* data;
  int64_t stride;  // elements between rows
  int64_t base;    // element at which row 0 begins
  int dim;

  const float* row(int64_t index, float* scratch) const {
    return row_as_float(dtype, data, base + index * stride, dim, scratch);
  }
};

// Row panels: dst (panel, dim, height) of rows [first, first + count); the last panel is filled up
// with the row `zeros`. `scratch` holds `height` rows of kMaxHeadDim.
HWY_INLINE void pack_row_panels(const HeadRows& rows, int64_t first, int count, int height,
                                const float* zeros, float* scratch, float* dst) {
  for (int panel = 0; panel < count; panel += height) {
    const float* sources[16];
    for (int i = 0; i < height; ++i) {
      sources[i] = panel + i < count
                       ? rows.row(first + panel + i, scratch + int64_t{i} * kMaxHeadDim)
                       : zeros;
    }
    pack_transposed(sources, height, rows.dim, dst + int64_t{panel} * rows.dim, height);
  }
}

// One row into dim panels: dst[(d / width) * panel_stride + d % width] = row[d], zeros from `dim`
// up to a whole panel.
HWY_INLINE void pack_dims(const float* row, int dim, int width, int64_t panel_stride, float* dst) {
  int d = 0;
  for (; d + width <= dim; d += width, dst += panel_stride) {
    std::memcpy(dst, row + d, sizeof(float) * static_cast<size_t>(width));
  }
  if (d == dim) return;
  for (int i = 0; i < width; ++i) dst[i] = d + i < dim ? row[d + i] : 0.0F;
}

// Dim panels of rows [first, first + count): dst (panel, row, width), panel_stride apart; rows up
// to `padded` are zeros. Sixteen rows at a time: a panel's lines are then written whole, where
// going row by row would visit every panel, often all in one cache set, for a few bytes each.
HWY_INLINE void pack_dim_panels(const HeadRows& rows, int64_t first, int count, int padded,
                                int width, int64_t panel_stride, const float* zeros, float* scratch,
                                float* dst) {
  constexpr int kAtOnce = 16;
  const float* sources[kAtOnce];
  for (int begin = 0; begin < padded; begin += kAtOnce) {
    const int some = std::min(kAtOnce, padded - begin);
    for (int i = 0; i < some; ++i) {
      sources[i] = begin + i < count
                       ? rows.row(first + begin + i, scratch + int64_t{i} * kMaxHeadDim)
                       : zeros;
    }
    float* out = dst + int64_t{begin} * width;
    for (int d = 0; d < rows.dim; d += width, out += panel_stride) {
      const int dims = std::min(width, rows.dim - d);
      for (int i = 0; i < some; ++i) pack_dims(sources[i] + d, dims, width, 0, out + i * width);
    }
  }
}

}  // namespace ring::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
