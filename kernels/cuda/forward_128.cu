// Forward kernels of head dim 128.
#include "kernels/cuda/forward_kernel.cuh"

namespace ring::cuda {

void add_forward_128(std::vector<CompiledKernel>& kernels) {
  add_forward<128, 128, 128, 64, 4, 2>(kernels);
  // For devices with 100 KB of shared memory per SM (sm_86, sm_89): two blocks fit there too.
  add_forward<128, 128, 128, 32, 4, 2>(kernels);
}

}  // namespace ring::cuda
