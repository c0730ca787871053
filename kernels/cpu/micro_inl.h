// Register tiles of the attention kernels, for each Highway target. Included once per target.
//
// Vector lanes are queries. A tile of kTileRows queries is stored transposed, (dim, lane) or
// (key, lane); keys and values are broadcast from panels of kPanel. Softmax then needs no step
// across lanes, and every output element is one chain of multiply-adds in order of the inner
// index, whatever the tile: the same row gives the same bits in any tile.
#if defined(RING_CPU_MICRO_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef RING_CPU_MICRO_INL_H
#undef RING_CPU_MICRO_INL_H
#else
#define RING_CPU_MICRO_INL_H
#endif

#include <hwy/highway.h>

#include <iterator>
#include <limits>

#include "kernels/cpu/pack_inl.h"

HWY_BEFORE_NAMESPACE();
namespace ring::cpu::HWY_NAMESPACE {

// Accumulators are kPanel * kVectors registers: 12 of 16 with SSE4 and AVX2, 24 of 32 with
// AVX-512 and NEON.
#if HWY_TARGET == HWY_SCALAR
constexpr int kPanel = 4;
constexpr int kVectors = 4;
#elif HWY_TARGET <= HWY_AVX3 || HWY_TARGET == HWY_NEON
constexpr int kPanel = 8;
constexpr int kVectors = 3;
#else
constexpr int kPanel = 4;
constexpr int kVectors = 3;
#endif
// Long enough that branch prediction sees the ends of the common loops coming.
constexpr int kUnroll = 8;
constexpr int kLanes = static_cast<int>(hn::MaxLanes(Df()));
constexpr int kTileRows = kVectors * kLanes;
static_assert(kTileRows % 4 == 0);

constexpr float kNegInf = -std::numeric_limits<float>::infinity();
constexpr float kLog2e = 1.44269504088896340736F;
// Arguments of exp2 are raised to this: its result, 2^-100, changes no fp32 sum that holds a term
// of about 1, and stays clear of slow denormal products.
constexpr float kExpFloor = -100.0F;

// Coefficients of 2^f, |f| <= 1/2, the highest power first; 2^0 = 1 exactly. Chosen for the least
// error in ulp: 1.9 over all arguments with fused steps. Steps that round twice need one more.
#if HWY_NATIVE_FMA
constexpr float kExp2[] = {0x1.5ab438p-10F, 0x1.3cecap-7F,  0x1.c6baa2p-5F,
                           0x1.ebf9b2p-3F,  0x1.62e424p-1F, 1.0F};
#else
constexpr float kExp2[] = {0x1.41fbc0p-13F,
                           0x1.5f3e56p-10F,
                           0x1.3b2d4cp-7F,
                           0x1.c6aee8p-5F,
                           0x1.ebfbdcp-3F,
                           0x1.62e430p-1F,
                           1.0F};
#endif

// x = 2^x for x clamped to [kExpFloor, 0]: rounding can lift the largest score of a row above its
// maximum, by far where scores are huge. x = n + f, and 2^f is a polynomial. The chains of kCount
// vectors are written step by step, side by side: one after the other they would fill the
// schedulers of a core with steps that wait.
template <int kCount>
HWY_INLINE void exp2_clamped(Vf (&x)[kCount]) {
  const Df df;
  const hn::RebindToSigned<Df> di;
  const Vf magic = hn::Set(df, 12582912.0F);  // 1.5 * 2^23: adding it rounds to an integer
  Vf shifted[kCount];
  Vf p[kCount];
#pragma GCC unroll 8
  for (int i = 0; i < kCount; ++i) {
    x[i] = hn::Min(hn::Max(x[i], hn::Set(df, kExpFloor)), hn::Zero(df));
    shifted[i] = hn::Add(x[i], magic);
  }
#pragma GCC unroll 8
  for (int i = 0; i < kCount; ++i) {
    x[i] = hn::Sub(x[i], hn::Sub(shifted[i], magic));
    p[i] = hn::Set(df, kExp2[0]);
  }
  for (size_t step = 1; step < std::size(kExp2); ++step) {
    for (int i = 0; i < kCount; ++i) p[i] = hn::MulAdd(p[i], x[i], hn::Set(df, kExp2[step]));
  }
#pragma GCC unroll 8
  for (int i = 0; i < kCount; ++i) {
    const auto exponent = hn::ShiftLeft<23>(hn::BitCast(di, shifted[i]));
    x[i] = hn::BitCast(df, hn::Add(hn::BitCast(di, p[i]), exponent));
  }
}

HWY_INLINE Vf exp2_clamped(Vf x) {
  Vf one[1] = {x};
  exp2_clamped(one);
  return one[0];
}

// acc[panel * kPanel + i][j] = sum over steps k < n of a[panel][k * kPanel + i] * b[k * ld + j].
template <class Products, int kPanels, int kVecs>
HWY_INLINE void multiply_panels(const float* HWY_RESTRICT a, int64_t panel_stride,
                                const float* HWY_RESTRICT b, int64_t ld, int n,
                                Vf (&acc)[kPanels * kPanel][kVecs]) {
  const Df df;
#pragma GCC unroll 16
  for (int i = 0; i < kPanels * kPanel; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < kVecs; ++j) acc[i][j] = hn::Zero(df);
  }
#pragma GCC unroll kUnroll
  for (int k = 0; k < n; ++k) {
    Vf lanes[kVecs];
#pragma GCC unroll 4
    for (int j = 0; j < kVecs; ++j) lanes[j] = hn::Load(df, b + k * ld + j * kLanes);
#pragma GCC unroll 16
    for (int i = 0; i < kPanels * kPanel; ++i) {
      const Vf factor = hn::Set(df, a[i / kPanel * panel_stride + k * kPanel + i % kPanel]);
#pragma GCC unroll 4
      for (int j = 0; j < kVecs; ++j) acc[i][j] = Products::add(factor, lanes[j], acc[i][j]);
    }
  }
}

// Scores of kPanels panels of keys: scores (key, lane) = K Q^T. With kMax also raises `peak`.
template <class Products, int kPanels, int kVecs, bool kMax>
HWY_INLINE void score_panels(const float* k_panel, int steps, const float* q_tile, float* scores,
                             int64_t ld, float* peak) {
  const Df df;
  Vf acc[kPanels * kPanel][kVecs];
  multiply_panels<Products, kPanels, kVecs>(k_panel, int64_t{steps} * kPanel, q_tile, kTileRows,
                                            steps, acc);
#pragma GCC unroll 4
  for (int j = 0; j < kVecs; ++j) {
    Vf top = kMax ? hn::Load(df, peak + j * kLanes) : hn::Zero(df);
#pragma GCC unroll 16
    for (int i = 0; i < kPanels * kPanel; ++i) {
      hn::Store(acc[i][j], df, scores + i * ld + j * kLanes);
      if (kMax) top = hn::Max(top, acc[i][j]);
    }
    if (kMax) hn::Store(top, df, peak + j * kLanes);
  }
}

// sums (dim, lane) of kPanels panels of dims: sums = sums * alpha + V^T P over `steps` steps of
// keys; with kFresh sums = V^T P, the same where they were 0.
template <class Products, int kPanels, int kVecs, bool kFresh>
HWY_INLINE void value_panels(const float* v_panel, int64_t panel_stride, const float* weights,
                             int64_t ld, int steps, const float* alpha, float* sums) {
  const Df df;
  Vf acc[kPanels * kPanel][kVecs];
  multiply_panels<Products, kPanels, kVecs>(v_panel, panel_stride, weights, ld, steps, acc);
#pragma GCC unroll 4
  for (int j = 0; j < kVecs; ++j) {
    const Vf scale = hn::Load(df, alpha + j * kLanes);
#pragma GCC unroll 16
    for (int i = 0; i < kPanels * kPanel; ++i) {
      float* out = sums + i * kTileRows + j * kLanes;
      const Vf sum = kFresh ? acc[i][j] : hn::MulAdd(hn::Load(df, out), scale, acc[i][j]);
      hn::Store(sum, df, out);
    }
  }
}

// Register tile of the products that sum over queries: kOuterRows keys by kOuterWidth dims.
#if HWY_TARGET == HWY_SCALAR
constexpr int kOuterRows = 4;
constexpr int kOuterVectors = 4;
#else
constexpr int kOuterRows = kPanel / 4 * 6;
constexpr int kOuterVectors = 2;
#endif
constexpr int kOuterWidth = kOuterVectors * kLanes;

// sums[i * sums_ld + j] += sum over steps k < n of a[i * a_ld + k] * b[k * kOuterWidth + j].
template <class Products>
HWY_INLINE void add_outer(const float* HWY_RESTRICT a, int64_t a_ld, const float* HWY_RESTRICT b,
                          int n, float* sums, int64_t sums_ld) {
  const Df df;
  Vf acc[kOuterRows][kOuterVectors];
#pragma GCC unroll 16
  for (int i = 0; i < kOuterRows; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < kOuterVectors; ++j) acc[i][j] = hn::Zero(df);
  }
#pragma GCC unroll kUnroll
  for (int k = 0; k < n; ++k) {
    Vf lanes[kOuterVectors];
#pragma GCC unroll 4
    for (int j = 0; j < kOuterVectors; ++j) {
      lanes[j] = hn::Load(df, b + k * kOuterWidth + j * kLanes);
    }
#pragma GCC unroll 16
    for (int i = 0; i < kOuterRows; ++i) {
      const Vf factor = hn::Set(df, a[i * a_ld + k]);
#pragma GCC unroll 4
      for (int j = 0; j < kOuterVectors; ++j)
        acc[i][j] = Products::add(factor, lanes[j], acc[i][j]);
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < kOuterRows; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < kOuterVectors; ++j) {
      float* out = sums + i * sums_ld + j * kLanes;
      hn::Store(hn::Add(hn::Load(df, out), acc[i][j]), df, out);
    }
  }
}

}  // namespace ring::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
