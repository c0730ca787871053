// Forward kernels of head dim 192 for Q and K, 128 for V.
#include "kernels/cuda/forward_kernel.cuh"

namespace ring::cuda {

void add_forward_192(std::vector<CompiledKernel>& kernels) {
  add_forward<192, 128, 128, 64, 8, 1>(kernels);
}

}  // namespace ring::cuda
