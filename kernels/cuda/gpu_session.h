// GpuSession: a program ready to run on the CUDA devices of this machine.
#pragma once

#include <memory>

#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/gpu_executor.h"
#include "kernels/cuda/job_executor.h"

namespace ring::cuda {

struct GpuSession {
  std::unique_ptr<DeviceRuntime> runtime;
  std::unique_ptr<GpuExecutor> local;
  std::unique_ptr<JobExecutor> together;  ///< Of a job of several processes.
  int first_device = 0;                   ///< That the first rank of this process runs on.

  Executor& executor() const {
    return together ? static_cast<Executor&>(*together) : static_cast<Executor&>(*local);
  }
};

/// A runtime on all devices of this machine; with exchanges so many ranks, all of this process,
/// meet over NCCL, rank r on device r. Throws Error(kUnavailable) where there are fewer devices.
std::unique_ptr<DeviceRuntime> make_runtime_for(Carrier carrier, int ranks, AttendKernels kernels);

/// With copies, ranks share the devices in turn; with exchanges every rank has a device of its own.
/// Throws Error(kUnavailable) where there are no devices, or fewer than exchanges need.
GpuSession make_gpu_session(const RingProgram& program, const DataSource& data, Carrier carrier,
                            AttendKernels kernels = AttendKernels::kBest);

/// One rank a process of the job, each on a GPU of its host, messages over NCCL. `positions` are
/// the tokens whose output process 0 can read.
GpuSession make_gpu_session(const RingProgram& program, const DataSource& data, Job& job,
                            std::vector<int64_t> positions,
                            AttendKernels kernels = AttendKernels::kBest);

/// "copies" or "exchanges"; throws Error(kUsage).
Carrier parse_carrier(std::string_view text);
std::string_view name(Carrier carrier);

}  // namespace ring::cuda
