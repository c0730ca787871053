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
    return hn::BitCast(Df(), hn::Or(hn::ShiftRight<16>(rounded(a)), high_half(rounded(b))));
  }

  // Stores the lanes of `v` as consecutive bf16 numbers, rounded as in `pair`: pairs of neighbours.
  static HWY_INLINE void store_narrow(Vf v, uint16_t* to) {
    const hn::Rebind<hwy::bfloat16_t, Df> narrow;
    hn::StoreU(hn::DemoteTo(narrow, hn::BitCast(Df(), rounded(v))), narrow,
               reinterpret_cast<hwy::bfloat16_t*>(to));
  }

 private:
  using Du = hn::RebindToUnsigned<Df>;
  using Vu = hn::Vec<Du>;

  static HWY_INLINE Vu high_half(Vu bits) { return hn::And(bits, hn::Set(Du(), 0xffff0000U)); }
  // Bits whose high half is the nearest bf16 number.
  static HWY_INLINE Vu rounded(Vf v) {
    return hn::Add(hn::BitCast(Du(), v), hn::Set(Du(), 0x8000U));
  }
  static HWY_INLINE Vf first(Vf pairs) {
    return hn::BitCast(Df(), hn::ShiftLeft<16>(hn::BitCast(Du(), pairs)));
  }
  static HWY_INLINE Vf second(Vf pairs) {
    return hn::BitCast(Df(), high_half(hn::BitCast(Du(), pairs)));
  }
};

}  // namespace ring::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
