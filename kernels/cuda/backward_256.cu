// Backward kernels of head dim 256.
#include "kernels/cuda/backward_kernel.cuh"

namespace ring::cuda {

void add_backward_256(std::vector<BackwardPair>& kernels) {
  add_backward<256, 256, 32, 32, 2, 2, 2>(kernels);
}

}  // namespace ring::cuda
