// What the GPU kernels compute, done plainly on the host; for the orchestration without a GPU.
#pragma once

#include "kernels/cuda/runtime.h"

namespace ring::cuda {

/// Any head dims; one thread, fp32 sums, P not rounded. Slow, for small shapes.
void run_on_host(const KernelCall& call);

}  // namespace ring::cuda
