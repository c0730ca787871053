// Backward kernels of head dim 64 and 96.
#include "kernels/cuda/backward_kernel.cuh"

namespace ring::cuda {

void add_backward_64(std::vector<BackwardPair>& kernels) {
  add_backward<64, 64, 64, 64, 4, 3>(kernels);
  add_backward<96, 96, 64, 64, 4, 2>(kernels);
}

std::vector<BackwardPair> backward_kernels() {
  std::vector<BackwardPair> kernels;
  add_backward_64(kernels);
  add_backward_128(kernels);
  add_backward_256(kernels);
  return kernels;
}

}  // namespace ring::cuda
