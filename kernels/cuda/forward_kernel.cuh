// The forward kernel as a __global__ function, and its entry in the list of compiled kernels.
#pragma once

#include <type_traits>

#include "kernels/cuda/device_lane.cuh"
#include "kernels/cuda/forward.h"
#include "kernels/cuda/kernels.h"

namespace ring::cuda {

template <class Config, int kBlocksPerSm>
__global__ void __launch_bounds__(Config::kThreads, kBlocksPerSm)
    forward_kernel(const __grid_constant__ ForwardParams params) {
  simt::DeviceLane lane;
  Forward<Config>::run(lane, params);
}

template <class Config, int kBlocksPerSm>
CompiledKernel forward_entry() {
  CompiledKernel kernel;
  kernel.function = reinterpret_cast<const void*>(&forward_kernel<Config, kBlocksPerSm>);
  kernel.name = "forward";
  kernel.dtype = std::is_same_v<typename Config::Element, simt::F16> ? DType::kF16 : DType::kBF16;
  kernel.dim_qk = Config::kDimQk;
  kernel.dim_v = Config::kDimV;
  kernel.rows = Config::kRows;
  kernel.keys = Config::kKeys;
  kernel.threads = Config::kThreads;
  kernel.shared_bytes = Config::kSharedBytes;
  kernel.blocks_per_sm = kBlocksPerSm;
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
