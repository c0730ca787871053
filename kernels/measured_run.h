// MeasuredRun: a program run for real on this machine, its result checked against the oracle.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/counters.h"
#include "core/metrics.h"
#include "core/ring_program.h"
#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/device_plan.h"
#include "kernels/job.h"
#include "kernels/measurement.h"
#include "kernels/verify.h"

namespace ring {

struct MeasureOptions {
  int cores = 0;  ///< 0: all that the process may use.
  /// Runs on the CUDA devices of this machine, messages carried so; none: on the cores.
  std::optional<cuda::Carrier> gpu;
  cuda::AttendKernels gpu_kernels = cuda::AttendKernels::kBest;
  /// One rank a process, on GPUs; all processes of the job measure together. May be null.
  Job* job = nullptr;
  int warmups = 1;
  int repeats = 5;
  uint64_t seed = 1;        ///< Of the values of Q, K and V.
  int64_t check_rows = 16;  ///< Checked against the oracle; 0 for none.
  /// `done` is the share of the whole, in [0, 1]; may be empty.
  std::function<void(double done, std::string_view what)> on_progress;
};

struct MeasuredRun {
  Measurement measurement;
  Metrics metrics;                             ///< Of the run whose time is the median.
  std::optional<Verification> verification;    ///< None when not wanted, or stopped before.
  Picoseconds clock_uncertainty_ps = 0;        ///< Of times of different ranks; 0: one clock.
  std::vector<Counter> counters;               ///< Of GPUs, beside the timeline.
  std::map<std::string, std::string> context;  ///< Devices, versions, clocks, of a run on GPUs.
};

/// On processes of a job other than 0 nothing is verified, and the timeline is that of one rank.
/// Ends early, with what was measured so far, once `is_interrupted`. Throws as CpuExecutor
/// and cuda::make_gpu_session do.
MeasuredRun measure_program(const RingProgram& program, const MeasureOptions& options,
                            const std::atomic<bool>& is_interrupted);

/// Throws Error(kUsage) when the program takes more memory than is available, or has no attention.
void require_runnable(const RingProgram& program, Bytes available_bytes);

}  // namespace ring
