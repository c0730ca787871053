// The forward kernel for sm_90a, for the host.
#include "tests/kernels/gpu_forward_inl.h"

namespace ring::test {

template simt::Counters launch_forward<H64Small>(ForwardLaunch);
template simt::Counters launch_forward<H64Half>(ForwardLaunch);
template simt::Counters launch_forward<H128>(ForwardLaunch);
template simt::Counters launch_forward<H128Half>(ForwardLaunch);

}  // namespace ring::test
