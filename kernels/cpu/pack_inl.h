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
#include "kernels/cpu/products_inl.h"

HWY_BEFORE_NAMESPACE();
namespace ring::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Reads a byte of every cache line of [data, data + bytes). Loads that wait for nothing bring rows
// in far sooner than the packing that follows would, whose stores stand between its loads.
HWY_INLINE void touch(const void* data, int64_t bytes) {
  const auto* at = static_cast<const volatile char*>(data);
  for (int64_t i = 0; i < bytes; i += 64) (void)at[i];
}

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
// Within every block of four lanes: out_i[j] = in_j[i].
template <class D, class V = hn::Vec<D>>
HWY_INLINE void transpose_blocks(D d, V (&r)[4]) {
  const V low02 = hn::InterleaveLower(d, r[0], r[2]);
  const V low13 = hn::InterleaveLower(d, r[1], r[3]);
  const V high02 = hn::InterleaveUpper(d, r[0], r[2]);
  const V high13 = hn::InterleaveUpper(d, r[1], r[3]);
  r[0] = hn::InterleaveLower(d, low02, low13);
  r[1] = hn::InterleaveUpper(d, low02, low13);
  r[2] = hn::InterleaveLower(d, high02, high13);
  r[3] = hn::InterleaveUpper(d, high02, high13);
}

// The vector whose block b of four lanes is rows[4 b][at, at + 4).
template <class D>
HWY_INLINE hn::Vec<D> load_blocks(D d, const float* const* rows, int64_t at) {
  if constexpr (hn::MaxLanes(d) == 4) {
    return hn::LoadU(d, rows[0] + at);
  } else {
    const hn::Half<D> half;
    constexpr size_t kHalf = hn::MaxLanes(half);
    return hn::Combine(d, load_blocks(half, rows + kHalf, at), load_blocks(half, rows, at));
  }
}

// The inverse.
template <class D>
HWY_INLINE void store_blocks(D d, hn::Vec<D> v, float* const* rows, int64_t at) {
  if constexpr (hn::MaxLanes(d) == 4) {
    hn::StoreU(v, d, rows[0] + at);
  } else {
    const hn::Half<D> half;
    store_blocks(half, hn::LowerHalf(half, v), rows, at);
    store_blocks(half, hn::UpperHalf(half, v), rows + hn::MaxLanes(half), at);
  }
}

// pack_transposed for as many rows as D has lanes; returns the dims done.
template <class D>
HWY_INLINE int pack_lanes(D d, const float* const* rows, int dim, float* HWY_RESTRICT dst, int ld) {
  int at = 0;
  for (; at + 4 <= dim; at += 4) {
    hn::Vec<D> r[4];
    for (int i = 0; i < 4; ++i) r[i] = load_blocks(d, rows + i, at);
    transpose_blocks(d, r);
    for (int i = 0; i < 4; ++i) hn::StoreU(r[i], d, dst + (at + i) * ld);
  }
  return at;
}

template <class D>
HWY_INLINE int unpack_lanes(D d, const float* HWY_RESTRICT src, int ld, int dim,
                            float* const* rows) {
  int at = 0;
  for (; at + 4 <= dim; at += 4) {
    hn::Vec<D> r[4];
    for (int i = 0; i < 4; ++i) r[i] = hn::LoadU(d, src + (at + i) * ld);
    transpose_blocks(d, r);
    for (int i = 0; i < 4; ++i) store_blocks(d, r[i], rows + i, at);
  }
  return at;
}
#endif

// Rows that go through one vector at a time: all its lanes, or four.
HWY_INLINE int rows_at_once(int lanes) {
  constexpr int kAll = static_cast<int>(hn::MaxLanes(Df()));
  return kAll > 4 && lanes >= kAll ? kAll : 4;
}

// dst[d * ld + i] = rows[i][d] for d < dim, i < lanes; lanes is a multiple of 4.
HWY_INLINE void pack_transposed(const float* const* rows, int lanes, int dim,
                                float* HWY_RESTRICT dst, int ld) {
  for (int i = 0, some = 0; i < lanes; i += some) {
    some = rows_at_once(lanes - i);
    int d = 0;
#if HWY_TARGET != HWY_SCALAR
    d = some == 4 ? pack_lanes(hn::FixedTag<float, 4>(), rows + i, dim, dst + i, ld)
                  : pack_lanes(Df(), rows + i, dim, dst + i, ld);
#endif
    for (; d < dim; ++d) {
      for (int j = 0; j < some; ++j) dst[d * ld + i + j] = rows[i + j][d];
    }
  }
}

// The inverse: rows[i][d] = src[d * ld + i].
HWY_INLINE void unpack_transposed(const float* HWY_RESTRICT src, int ld, int lanes, int dim,
                                  float* const* rows) {
  for (int i = 0, some = 0; i < lanes; i += some) {
    some = rows_at_once(lanes - i);
    int d = 0;
#if HWY_TARGET != HWY_SCALAR
    d = some == 4 ? unpack_lanes(hn::FixedTag<float, 4>(), src + i, ld, dim, rows + i)
                  : unpack_lanes(Df(), src + i, ld, dim, rows + i);
#endif
    for (; d < dim; ++d) {
      for (int j = 0; j < some; ++j) rows[i + j][d] = src[d * ld + i + j];
    }
  }
}

// `dim` elements of the 16-bit row at `src` as (dim + 1) / 2 pairs, the last filled up with 0.
HWY_INLINE const float* row_as_pairs(const void* src, int dim, float* scratch) {
  const auto bytes = static_cast<size_t>(dim) * 2;
  if (dim % 2 != 0) scratch[dim / 2] = 0.0F;
  std::memcpy(scratch, src, bytes);
  return scratch;
}

// Steps of a product over `count` elements, `depth` at a step.
constexpr int steps_of(int count, int depth) { return (count + depth - 1) / depth; }

// Rows of one head of a stored tensor.
struct HeadRows {
  DType dtype;
  const void* data;
  int64_t stride;  // elements between rows
  int64_t base;    // element at which row 0 begins
  int dim;
  int depth = 1;  // 2: rows of pairs, for PairProducts

  const char* at(int64_t index) const {
    return static_cast<const char*>(data) + (base + index * stride) * size_bytes(dtype);
  }
  // Steps of a product over a row: fp32 numbers or pairs.
  int steps() const { return steps_of(dim, depth); }
  const float* row(int64_t index, float* scratch) const {
    if (depth == 2) return row_as_pairs(at(index), dim, scratch);
    return row_as_float(dtype, data, base + index * stride, dim, scratch);
  }
  void touch_rows(int64_t begin, int64_t end) const {
    for (int64_t index = begin; index < end; ++index) {
      touch(at(index), dim * size_bytes(dtype));
    }
  }
};

HWY_INLINE HeadRows head_rows(const AttendShape& shape, const ConstView& view, int64_t head,
                              int dim, int depth) {
  return {shape.dtype, view.data, view.token_stride, head * view.head_stride, dim, depth};
}

// Rows that are brought in and packed at once.
constexpr int kRowsAtOnce = 16;

// Row panels: dst (panel, step, height) of rows [first, first + count); the last panel is filled up
// with the row `zeros`. `scratch` holds `height` rows of kMaxHeadDim.
HWY_INLINE void pack_row_panels(const HeadRows& rows, int64_t first, int count, int height,
                                const float* zeros, float* scratch, float* dst) {
  for (int panel = 0; panel < count; panel += height) {
    if (panel % kRowsAtOnce == 0) {
      rows.touch_rows(first + panel, first + std::min(panel + kRowsAtOnce, count));
    }
    const float* sources[16];
    for (int i = 0; i < height; ++i) {
      sources[i] = panel + i < count
                       ? rows.row(first + panel + i, scratch + int64_t{i} * kMaxHeadDim)
                       : zeros;
    }
    pack_transposed(sources, height, rows.steps(), dst + int64_t{panel} * rows.steps(), height);
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

// pack_dim_panels of fp32 numbers.
HWY_INLINE void pack_number_dim_panels(const HeadRows& rows, int64_t first, int count, int padded,
                                       int width, int64_t panel_stride, const float* zeros,
                                       float* scratch, float* dst) {
  const float* sources[kRowsAtOnce];
  for (int begin = 0; begin < padded; begin += kRowsAtOnce) {
    const int some = std::min(kRowsAtOnce, padded - begin);
    rows.touch_rows(first + begin, first + std::min(begin + some, count));
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

// Pairs of the elements of two 16-bit rows: dst[(d / width) * panel_stride + d % width] =
// (a[d], b[d]) for d < dims, a multiple of 4; width is one too.
HWY_INLINE void pair_rows(const uint16_t* a, const uint16_t* b, int dims, int width,
                          int64_t panel_stride, float* dst) {
  for (int d = 0; d < dims; d += 4) {
    float* out = dst + d / width * panel_stride + d % width;
#if HWY_TARGET == HWY_SCALAR
    for (int i = 0; i < 4; ++i) {
      const uint32_t pair = uint32_t{a[d + i]} | uint32_t{b[d + i]} << 16;
      std::memcpy(out + i, &pair, sizeof pair);
    }
#else
    const hn::FixedTag<uint16_t, 8> d16;
    const auto pairs = hn::InterleaveLower(d16, hn::LoadU(d16, a + d), hn::LoadU(d16, b + d));
    hn::StoreU(hn::BitCast(hn::FixedTag<float, 4>(), pairs), hn::FixedTag<float, 4>(), out);
#endif
  }
}

// pack_dim_panels in pairs of consecutive rows.
HWY_INLINE void pack_pair_dim_panels(const HeadRows& rows, int64_t first, int count, int padded,
                                     int width, int64_t panel_stride, float* scratch, float* dst) {
  constexpr int kRowElements = 2 * kMaxHeadDim;
  auto* halves = reinterpret_cast<uint16_t*>(scratch);
  const int dims = (rows.dim + width - 1) / width * width;
  for (int begin = 0; begin < padded; begin += kRowsAtOnce) {
    const int some = std::min(kRowsAtOnce, padded - begin);
    rows.touch_rows(first + begin, first + std::min(begin + some, count));
    for (int i = 0; i < some; ++i) {
      uint16_t* to = halves + i * kRowElements;
      const int dim = begin + i < count ? rows.dim : 0;
      std::memset(to + dim, 0, static_cast<size_t>(dims - dim) * 2);
      if (dim > 0) std::memcpy(to, rows.at(first + begin + i), static_cast<size_t>(dim) * 2);
    }
    for (int i = 0; i < some; i += 2) {
      pair_rows(halves + i * kRowElements, halves + (i + 1) * kRowElements, dims, width,
                panel_stride, dst + int64_t{begin + i} / 2 * width);
    }
  }
}

// Dim panels of rows [first, first + count): dst (panel, step of rows, width), panel_stride apart;
// rows up to `padded`, a multiple of rows.depth, are zeros. Sixteen rows at a time: a panel's lines
// are then written whole, where going row by row would visit every panel, often all in one cache
// set, for a few bytes each. `scratch` holds 16 rows of kMaxHeadDim.
HWY_INLINE void pack_dim_panels(const HeadRows& rows, int64_t first, int count, int padded,
                                int width, int64_t panel_stride, const float* zeros, float* scratch,
                                float* dst) {
  if (rows.depth == 2) {
    pack_pair_dim_panels(rows, first, count, padded, width, panel_stride, scratch, dst);
  } else {
    pack_number_dim_panels(rows, first, count, padded, width, panel_stride, zeros, scratch, dst);
  }
}

}  // namespace ring::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
