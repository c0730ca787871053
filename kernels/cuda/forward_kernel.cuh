// The forward kernel as a __global__ function, and its entry in the list of compiled kernels.
#pragma once

#include "kernels/cuda/device_lane.cuh"
#include "kernels/cuda/forward.h"
#include "kernels/cuda/kernel_entry.cuh"

namespace ring::cuda {

template <class Config, int kBlocksPerSm>
__global__ void __launch_bounds__(Config::kThreads, kBlocksPerSm)
    forward_kernel(const __grid_constant__ ForwardParams params) {
  simt::DeviceLane lane;
  Forward<Config>::run(lane, params);
}

template <class Config, int kBlocksPerSm>
CompiledKernel forward_entry() {
  CompiledKernel kernel = entry_of_tile<Config>(kBlocksPerSm);
  kernel.function = reinterpret_cast<const void*>(&forward_kernel<Config, kBlocksPerSm>);
  kernel.name = "forward";
  kernel.shared_bytes = Config::kSharedBytes;
  return kernel;
}

/// The same tile for both element types.
template <int kDimQk, int kDimV, int kRows, int kKeys, int kWarps, int kBlocksPerSm>
void add_forward(std::vector<CompiledKernel>& kernels) {
  kernels.push_back(forward_entry<ForwardConfig<simt::Bf16, kDimQk, kDimV, kRows, kKeys, kWarps>,
                                  kBlocksPerSm>());
  kernels.push_back(
      forward_entry<ForwardConfig<simt::F16, kDimQk, kDimV, kRows, kKeys, kWarps>, kBlocksPerSm>());
}

void add_forward_64(std::vector<CompiledKernel>& kernels);
void add_forward_96(std::vector<CompiledKernel>& kernels);
void add_forward_128(std::vector<CompiledKernel>& kernels);
void add_forward_192(std::vector<CompiledKernel>& kernels);
void add_forward_256(std::vector<CompiledKernel>& kernels);

}  // namespace ring::cuda
