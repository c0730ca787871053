// Forward kernels of head dim 96.
#include "kernels/cuda/forward_kernel.cuh"

namespace ring::cuda {

void add_forward_96(std::vector<CompiledKernel>& kernels) {
  add_forward<96, 96, 128, 64, 4, 2>(kernels);
}

}  // namespace ring::cuda
