// What one step of a matrix product multiplies, for each Highway target. Included once per target.
#if defined(RING_CPU_PRODUCTS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef RING_CPU_PRODUCTS_INL_H
#undef RING_CPU_PRODUCTS_INL_H
#else
#define RING_CPU_PRODUCTS_INL_H
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace ring::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Df = hn::ScalableTag<float>;
using Vf = hn::Vec<Df>;

// One fp32 term a step.
struct FloatProducts {
  static constexpr int kDepth = 1;
  static HWY_INLINE Vf add(Vf factor, Vf lanes, Vf sum) { return hn::MulAdd(factor, lanes, sum); }
};

// Two bf16 terms a step: a 32-bit lane holds a pair of consecutive terms, the first in its low
// half, and travels as if it were an fp32 number. Sums are fp32.
struct PairProducts {
  static constexpr int kDepth = 2;
  static HWY_INLINE Vf add(Vf factor, Vf lanes, Vf sum) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
    // AVX512-BF16, which these targets do not imply: dispatched only where the CPU has it.
    asm("vdpbf16ps %2, %1, %0" : "+v"(sum.raw) : "v"(lanes.raw), "v"(factor.raw));
    return sum;
#else
    sum = hn::MulAdd(second(factor), second(lanes), sum);
    return hn::MulAdd(first(factor), first(lanes), sum);
#endif
  }

  // The pair of two fp32 numbers, each rounded to the nearest bf16 number, ties away from zero.
  static HWY_INLINE Vf pair(Vf a, Vf b) {
    const hn::RebindToUnsigned<Df> du;
    const auto half = hn::Set(du, 0x8000U);
    const auto low = hn::ShiftRight<16>(hn::Add(hn::BitCast(du, a), half));
    const auto high = hn::And(hn::Add(hn::BitCast(du, b), half), hn::Set(du, 0xffff0000U));
    return hn::BitCast(Df(), hn::Or(low, high));
  }

  // Stores the lanes of `v` as consecutive bf16 numbers, rounded as in `pair`: pairs of neighbours.
  static HWY_INLINE void store_narrow(Vf v, uint16_t* to) {
    const hn::Rebind<hwy::bfloat16_t, Df> narrow;
    const hn::RebindToUnsigned<Df> du;
    const auto rounded = hn::BitCast(Df(), hn::Add(hn::BitCast(du, v), hn::Set(du, 0x8000U)));
    hn::StoreU(hn::DemoteTo(narrow, rounded), narrow, reinterpret_cast<hwy::bfloat16_t*>(to));
  }

 private:
  static HWY_INLINE Vf first(Vf pairs) {
    const hn::RebindToUnsigned<Df> du;
    return hn::BitCast(Df(), hn::ShiftLeft<16>(hn::BitCast(du, pairs)));
  }
  static HWY_INLINE Vf second(Vf pairs) {
    const hn::RebindToUnsigned<Df> du;
    return hn::BitCast(Df(), hn::And(hn::BitCast(du, pairs), hn::Set(du, 0xffff0000U)));
  }
};

}  // namespace ring::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
