// Forward kernels with the tiles of the GPU, for the host.
#include "tests/kernels/gpu_forward_inl.h"

namespace ring::test {

template simt::Counters launch_forward<F128>(ForwardLaunch);
template simt::Counters launch_forward<F128Half>(ForwardLaunch);
template simt::Counters launch_forward<F192>(ForwardLaunch);
template simt::Counters launch_forward<F256>(ForwardLaunch);

}  // namespace ring::test
