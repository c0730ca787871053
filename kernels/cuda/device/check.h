// Checks of hardware calls: what failed, where, and on which device.
#pragma once

#include <cuda_runtime_api.h>

#include <source_location>

namespace ring::cuda {

/// Throws Error(kRunFailed) with file and line unless the call succeeded.
void check_cuda(cudaError_t error, const char* call,
                const std::source_location& where = std::source_location::current());

}  // namespace ring::cuda

#define RING_CUDA_CHECK(call) ::ring::cuda::check_cuda((call), #call)
