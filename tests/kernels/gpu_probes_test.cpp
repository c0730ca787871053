// The calibration of GPUs, on a runtime that takes the time it is told to.
#include "kernels/cuda/gpu_probes.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "core/program_check.h"
#include "kernels/cuda/host_runtime.h"

namespace ring::cuda {
namespace {

constexpr double kLaunch_s = 40e-6, kPairDim_s = 2e-12;

/// Of one head and one batch element.
template <class Params>
double visible_pairs(const Params& p) {
  if (p.spans == nullptr) return static_cast<double>(p.q_rows) * p.kv_rows;
  double pairs = 0;
  for (int row = 0; row < p.q_rows; ++row)
    pairs += std::max(p.spans[row].end - p.spans[row].begin, 0);
  return pairs;
}

// Attention takes a launch and a time a visible pair and dim, backward so many times as much; the
// rest takes none.
constexpr double kBackwardFactor = 2.5;
void take_time(const KernelCall& call) {
  double seconds = 0;
  const auto time_of = [](const auto& it, double factor) {
    return kLaunch_s +
           factor * visible_pairs(it.params) * it.heads * (it.dim_qk + it.dim_v) * kPairDim_s;
  };
  if (const auto* const attend = std::get_if<AttendCall>(&call)) seconds = time_of(*attend, 1);
  if (const auto* const backward = std::get_if<BackwardCall>(&call))
    seconds = time_of(*backward, kBackwardFactor);
  if (seconds == 0) return;
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds * 0.8));
  while (std::chrono::steady_clock::now() < end) {
  }
}

TEST(GpuProbes, ProgramsAreSoundAndSaySoManyDevices) {
  for (const int devices : {1, 2}) {
    for (const GpuProbe& probe : gpu_probe_programs(devices, 1024)) {
      EXPECT_TRUE(check_program(probe.probe.program).empty()) << probe.probe.label;
      EXPECT_EQ(static_cast<int>(probe.devices.size()), probe.probe.program.ranks());
      for (const int device : probe.devices) EXPECT_LT(device, devices);
    }
  }
}

TEST(GpuProbesTimed, FitsWhatTheDevicesTake) {
  HostRuntimeOptions host;
  host.devices = 2;
  host.kernels = take_time;
  HostRuntime runtime(host);
  CalibrationOptions options;
  options.budget_s = 1;
  options.least_rounds = 1;
  const CalibrationResult result = calibrate_gpu(runtime, options, 2048);
  const Machine& machine = result.machine;
  EXPECT_TRUE(result.is_complete);
  EXPECT_EQ(machine.processors.size(), 2U);
  EXPECT_EQ(machine.transfer, TransferKind::kLinks);
  EXPECT_TRUE(machine.topology.has_route(machine.processors[0], machine.processors[1]));
  EXPECT_GT(machine.copy.bytes_per_s, 0);
  for (const DType dtype : {DType::kBF16, DType::kF16}) {
    ASSERT_TRUE(machine.attend.contains(dtype));
    // One block of 1024 rows and 512 keys, as the time was made: within what a busy host adds.
    Problem problem;
    problem.heads = problem.kv_heads = 16;
    problem.dtype = dtype;
    Op op;
    op.kind = OpKind::kAttend;
    op.q_end = op.active_rows = 1024;
    op.kv_end = 512;
    op.head_end = 16;
    op.visible_pairs = 1024 * 512;
    const double want = kLaunch_s + 1024.0 * 512 * 16 * 256 * kPairDim_s;
    EXPECT_NEAR(attend_seconds(machine.attend.at(dtype), problem, op), want, 0.3 * want);
    ASSERT_TRUE(machine.backward.contains(dtype));
    op.kind = OpKind::kBackward;
    const double backward = kLaunch_s + kBackwardFactor * 1024.0 * 512 * 16 * 256 * kPairDim_s;
    EXPECT_NEAR(backward_seconds(machine.backward.at(dtype), problem, op), backward,
                0.3 * backward);
  }
  options.interrupt = nullptr;
}

}  // namespace
}  // namespace ring::cuda
