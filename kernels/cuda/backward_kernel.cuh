// The backward kernels as __global__ functions, and their entries in the list of compiled kernels.
#pragma once

#include "kernels/cuda/backward.h"
#include "kernels/cuda/device_lane.cuh"
#include "kernels/cuda/kernel_entry.cuh"

namespace ring::cuda {

template <class Config, int kBlocksPerSm>
__global__ void __launch_bounds__(Config::kThreads, kBlocksPerSm)
    backward_rows_kernel(const __grid_constant__ BackwardParams params) {
  simt::DeviceLane lane;
  BackwardRows<Config>::run(lane, params);
}
template <class Config, int kBlocksPerSm>
__global__ void __launch_bounds__(Config::kThreads, kBlocksPerSm)
    backward_keys_kernel(const __grid_constant__ BackwardParams params) {
  simt::DeviceLane lane;
  BackwardKeys<Config>::run(lane, params);
}

template <class Config, int kBlocksPerSm>
BackwardPair backward_entry() {
  CompiledKernel kernel = entry_of_tile<Config>(kBlocksPerSm);
  kernel.shared_bytes = BackwardShared<Config>::kBytes;
  kernel.parts = Config::kParts;
  BackwardPair pair{kernel, kernel};
  pair.rows.name = "backward rows";
  pair.rows.function = reinterpret_cast<const void*>(&backward_rows_kernel<Config, kBlocksPerSm>);
  pair.keys.name = "backward keys";
  pair.keys.function = reinterpret_cast<const void*>(&backward_keys_kernel<Config, kBlocksPerSm>);
  return pair;
}

/// The same tile for both element types.
template <int kDimQk, int kDimV, int kRows, int kKeys, int kWarps, int kBlocksPerSm, int kParts = 1>
void add_backward(std::vector<BackwardPair>& kernels) {
  kernels.push_back(
      backward_entry<BackwardConfig<simt::Bf16, kDimQk, kDimV, kRows, kKeys, kWarps, kParts>,
                     kBlocksPerSm>());
  kernels.push_back(
      backward_entry<BackwardConfig<simt::F16, kDimQk, kDimV, kRows, kKeys, kWarps, kParts>,
                     kBlocksPerSm>());
}

void add_backward_64(std::vector<BackwardPair>& kernels);
void add_backward_128(std::vector<BackwardPair>& kernels);
void add_backward_256(std::vector<BackwardPair>& kernels);

}  // namespace ring::cuda
