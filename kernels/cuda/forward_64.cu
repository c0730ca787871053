// Forward kernels of head dim 64.
#include "kernels/cuda/forward_kernel.cuh"

namespace ring::cuda {

void add_forward_64(std::vector<CompiledKernel>& kernels) {
  add_forward<64, 64, 128, 64, 4, 2>(kernels);
}

}  // namespace ring::cuda
