// The forward kernels of sm_90a. Compiled for that alone; without it there are none.
#include "kernels/cuda/kernel_entry.cuh"

#ifdef RING_SM90A
#include "kernels/cuda/hopper_forward.h"
#include "kernels/cuda/hopper_lane.cuh"
#endif

namespace ring::cuda {

#ifdef RING_SM90A
namespace {

constexpr int kHopper = 90;

template <class Config>
__global__ void __launch_bounds__(Config::kThreads, 1)
    hopper_forward_kernel(const __grid_constant__ HopperParams params) {
  simt::HopperLane lane;
  HopperForward<Config>::run(lane, params);
}

template <class Config>
CompiledKernel hopper_entry() {
  CompiledKernel kernel = entry_of_tile<Config>(1);
  kernel.function = reinterpret_cast<const void*>(&hopper_forward_kernel<Config>);
  kernel.name = "forward-sm90a";
  kernel.shared_bytes = Config::kSharedBytes;
  kernel.capability = kHopper;
  return kernel;
}

}  // namespace

std::vector<CompiledKernel> hopper_forward_kernels() {
  return {hopper_entry<HopperConfig<simt::Bf16, 128, 128>>(),
          hopper_entry<HopperConfig<simt::F16, 128, 128>>(),
          hopper_entry<HopperConfig<simt::Bf16, 64, 128>>(),
          hopper_entry<HopperConfig<simt::F16, 64, 128>>()};
}
#else
std::vector<CompiledKernel> hopper_forward_kernels() { return {}; }
#endif

}  // namespace ring::cuda
