// What programs devices do not run, whatever the device.
#pragma once

#include "kernels/cuda/gpu_executor.h"

namespace ring::cuda {

/// Throws Error(kUnavailable) saying what runs instead, Error(kUsage) for ranks of other processes
/// that copies would have to reach.
void require_for_devices(const RingProgram& program, const GpuOptions& options);

}  // namespace ring::cuda
