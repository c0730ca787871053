// Forward kernels of small tiles, for the host.
#include "tests/kernels/gpu_forward_inl.h"

namespace ring::test {

template simt::Counters launch_forward<F64Small>(ForwardLaunch);
template simt::Counters launch_forward<F64Half>(ForwardLaunch);
template simt::Counters launch_forward<F96>(ForwardLaunch);
template simt::Counters launch_forward<F128Small>(ForwardLaunch);

}  // namespace ring::test
