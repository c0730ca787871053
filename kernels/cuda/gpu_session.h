// GpuSession: a program ready to run on the CUDA devices of this machine.
#pragma once

#include <memory>

#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/gpu_executor.h"

namespace ring::cuda {

struct GpuSession {
  std::unique_ptr<DeviceRuntime> runtime;
  std::unique_ptr<GpuExecutor> executor;
};

/// With copies, ranks share the devices in turn; with exchanges every rank has a device of its own.
/// Throws Error(kUnavailable) where there are no devices, or fewer than exchanges need.
GpuSession make_gpu_session(const RingProgram& program, const DataSource& data, Carrier carrier);

/// "copies" or "exchanges"; throws Error(kUsage).
Carrier parse_carrier(std::string_view text);

}  // namespace ring::cuda
