// Backward kernels of head dim 128, and of 192 for Q and K with 128 for V.
#include "kernels/cuda/backward_kernel.cuh"

namespace ring::cuda {

void add_backward_128(std::vector<BackwardPair>& kernels) {
  add_backward<128, 128, 64, 64, 4, 2>(kernels);
  add_backward<192, 128, 32, 32, 2, 2>(kernels);
}

}  // namespace ring::cuda
