// What the entries of all attention kernels in the list of compiled kernels have in common.
#pragma once

#include <type_traits>

#include "kernels/cuda/kernels.h"
#include "kernels/simt/types.h"

namespace ring::cuda {

/// All but the function, its name and its shared memory, from the tile that Config says.
template <class Config>
CompiledKernel entry_of_tile(int blocks_per_sm) {
  CompiledKernel kernel;
  kernel.dtype = std::is_same_v<typename Config::Element, simt::F16> ? DType::kF16 : DType::kBF16;
  kernel.dim_qk = Config::kDimQk;
  kernel.dim_v = Config::kDimV;
  kernel.rows = Config::kRows;
  kernel.keys = Config::kKeys;
  kernel.threads = Config::kThreads;
  kernel.blocks_per_sm = blocks_per_sm;
  return kernel;
}

}  // namespace ring::cuda
