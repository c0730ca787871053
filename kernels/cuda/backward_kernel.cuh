// The backward kernels as __global__ functions, and their entries in the list of compiled kernels.
#pragma once

#include <type_traits>

#include "kernels/cuda/backward.h"
#include "kernels/cuda/device_lane.cuh"
#include "kernels/cuda/kernels.h"

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
  CompiledKernel kernel;
  kernel.dtype = std::is_same_v<typename Config::Element, simt::F16> ? DType::kF16 : DType::kBF16;
  kernel.dim_qk = Config::kDimQk;
  kernel.dim_v = Config::kDimV;
  kernel.rows = Config::kRows;
  kernel.keys = Config::kKeys;
  kernel.threads = Config::kThreads;
  kernel.shared_bytes = BackwardShared<Config>::kBytes;
  kernel.blocks_per_sm = kBlocksPerSm;
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
