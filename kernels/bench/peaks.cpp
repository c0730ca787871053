#include "kernels/bench/peaks.h"

#include <benchmark/benchmark.h>

#include "kernels/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/bench/peaks.cpp"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#include "kernels/cpu/products_inl.h"

HWY_BEFORE_NAMESPACE();
namespace ring::bench::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Twelve chains cover the latency of two units of six cycles each.
template <class Products>
double multiply_add(int64_t iterations) {
  using cpu::HWY_NAMESPACE::Df;
  using V = cpu::HWY_NAMESPACE::Vf;
  const Df df;
  constexpr int kChains = 12;
  const V factor = hn::Set(df, 0.999F);
  const V term = hn::Set(df, 1e-3F);
  V sums[kChains];
#pragma GCC unroll 12
  for (int i = 0; i < kChains; ++i) sums[i] = hn::Set(df, static_cast<float>(i));
  for (int64_t n = 0; n < iterations; ++n) {
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i) {
      if constexpr (Products::kDepth == 1) {
        sums[i] = hn::MulAdd(sums[i], factor, term);  // stays finite
      } else {
        sums[i] = Products::add(factor, term, sums[i]);
      }
    }
  }
  V total = sums[0];
#pragma GCC unroll 12
  for (int i = 1; i < kChains; ++i) total = hn::Add(total, sums[i]);
  benchmark::DoNotOptimize(hn::GetLane(total));
  return 2.0 * Products::kDepth * kChains * static_cast<double>(hn::Lanes(df)) *
         static_cast<double>(iterations);
}

double Fma(int64_t iterations) {
  return multiply_add<cpu::HWY_NAMESPACE::FloatProducts>(iterations);
}

double Bf16Products(int64_t iterations) {
  return multiply_add<cpu::HWY_NAMESPACE::PairProducts>(iterations);
}

float Read(const float* data, int64_t bytes, int64_t passes) {
  const hn::ScalableTag<float> df;
  using V = hn::Vec<decltype(df)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(df));
  constexpr int kChains = 8;
  V sums[kChains];
#pragma GCC unroll 8
  for (int i = 0; i < kChains; ++i) sums[i] = hn::Zero(df);
  const int64_t count = bytes / 4;
  for (int64_t pass = 0; pass < passes; ++pass) {
    for (int64_t at = 0; at + kChains * lanes <= count; at += kChains * lanes) {
#pragma GCC unroll 8
      for (int i = 0; i < kChains; ++i) {
        sums[i] = hn::Add(sums[i], hn::Load(df, data + at + i * lanes));
      }
    }
    benchmark::ClobberMemory();
  }
  V total = sums[0];
#pragma GCC unroll 8
  for (int i = 1; i < kChains; ++i) total = hn::Add(total, sums[i]);
  return hn::GetLane(total);
}

}  // namespace ring::bench::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ring::bench {

HWY_EXPORT(Fma);
HWY_EXPORT(Bf16Products);
HWY_EXPORT(Read);

double run_fma(int64_t iterations) { return HWY_DYNAMIC_DISPATCH(Fma)(iterations); }

double run_bf16_products(int64_t iterations) {
  return HWY_DYNAMIC_DISPATCH(Bf16Products)(iterations);
}

float run_read(const float* data, int64_t bytes, int64_t passes) {
  return HWY_DYNAMIC_DISPATCH(Read)(data, bytes, passes);
}

}  // namespace ring::bench
#endif
