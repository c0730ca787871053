// The compiled GPU kernels, as a runtime launches them; no CUDA type is needed to speak of them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/dtype.h"
#include "kernels/simt/types.h"

namespace ring::cuda {

/// A kernel with a __global__ function that takes one parameter struct by value.
struct CompiledKernel {
  const void* function = nullptr;  ///< As cudaLaunchKernel takes it.
  const char* name = "";
  DType dtype = DType::kBF16;
  int dim_qk = 0, dim_v = 0;
  int rows = 0, keys = 0;  ///< Of a tile.
  int threads = 0;
  int shared_bytes = 0;
  int blocks_per_sm = 1;  ///< That its registers are limited for.
  int parts = 1;          ///< Blocks that share a tile's dims.
  int capability = 0;     ///< That it was compiled for and runs on alone; 0: on all.
};

/// All variants of the forward kernel, those for larger tiles first.
std::vector<CompiledKernel> forward_kernels();

/// Those with instructions of sm_90a, which take HopperParams; none if not built for it.
std::vector<CompiledKernel> hopper_forward_kernels();

/// All variants of the backward kernels: by rows (dQ), by keys (dK, dV).
struct BackwardPair {
  CompiledKernel rows, keys;
};
std::vector<BackwardPair> backward_kernels();

/// finalize, row_delta, absorb_output, narrow_all and widen_all of the dtype; the others take any.
enum class StateKernel {
  kFinalize,
  kMergeState,
  kMergeOutput,
  kReset,
  kDelta,
  kNarrow,
  kWiden,
  kNormalize,
  kComplete,
  kAdd,
  kAbsorb,
};
CompiledKernel state_kernel(StateKernel kernel, DType dtype);

/// One warp that does nothing for a time.
struct SpinParams {
  int64_t time_ns = 0;
};
CompiledKernel spin_kernel();

}  // namespace ring::cuda
