// Forward kernels of head dim 256.
#include "kernels/cuda/forward_kernel.cuh"

namespace ring::cuda {

void add_forward_256(std::vector<CompiledKernel>& kernels) {
  add_forward<256, 256, 128, 64, 8, 1>(kernels);
  // For devices with 100 KB of shared memory per SM.
  add_forward<256, 256, 64, 64, 4, 1>(kernels);
}

}  // namespace ring::cuda
