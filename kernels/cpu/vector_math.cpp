#include "kernels/cpu/vector_math.h"

#include "kernels/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/vector_math.cpp"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#include "kernels/cpu/micro_inl.h"

HWY_BEFORE_NAMESPACE();
namespace ring::cpu::HWY_NAMESPACE {

void Exp2(const float* in, int64_t n, float* out) {
  const Df df;
  int64_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    Vf x[4];
    for (int j = 0; j < 4; ++j) x[j] = hn::LoadU(df, in + i + j * kLanes);
    exp2_clamped(x);
    for (int j = 0; j < 4; ++j) hn::StoreU(x[j], df, out + i + j * kLanes);
  }
  for (; i < n; ++i) out[i] = hn::GetLane(exp2_clamped(hn::Set(df, in[i])));
}

}  // namespace ring::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ring::cpu {

HWY_EXPORT(Exp2);

void exp2_clamped(const float* in, int64_t n, float* out) {
  HWY_DYNAMIC_DISPATCH(Exp2)(in, n, out);
}

}  // namespace ring::cpu
#endif
