// The calibration of GPUs, on a runtime that takes the time it is told to.
#include "kernels/cuda/gpu_probes.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "core/program_check.h"
#include "kernels/cuda/gpu_session.h"
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

const LinkClasses kLinks[] = {
    {}, {{"nvlink", {{0, 1}}}}, {{"nvlink", {{0, 2}, {1, 3}}}, {"pcie", {{0, 1}, {2, 3}}}}};

TEST(GpuProbes, ProgramsAreSoundAndSaySoManyDevices) {
  for (const LinkClasses& links : kLinks) {
    for (const Carrier carrier : {Carrier::kCopies, Carrier::kExchanges}) {
      for (const GpuProbe& probe : gpu_probe_programs(links, {carrier, 1024})) {
        EXPECT_TRUE(check_program(probe.probe.program).empty()) << probe.probe.label;
        EXPECT_EQ(static_cast<int>(probe.devices.size()), probe.probe.program.ranks());
        if (probe.carrier != Carrier::kExchanges) continue;
        // The communicator of NCCL has rank r on device r.
        for (int rank = 0; rank < probe.probe.program.ranks(); ++rank)
          EXPECT_EQ(probe.devices[static_cast<size_t>(rank)], rank) << probe.probe.label;
      }
    }
  }
}

TEST(GpuProbes, EveryClassOfLinksIsMeasured) {
  for (const GpuProbe& probe : gpu_probe_programs(kLinks[2], {Carrier::kExchanges, 1024})) {
    if (probe.probe.transfer != "transfer-nvlink") continue;
    EXPECT_EQ(probe.devices.back(), 2);
    EXPECT_EQ(probe.carrier, Carrier::kExchanges);
    return;
  }
  FAIL() << "no messages over NVLink";
}

TEST(GpuProbesTimed, FitsWhatTheDevicesTake) {
  HostRuntimeOptions host;
  host.devices = 2;
  host.kernels = take_time;
  HostRuntime runtime(host);
  CalibrationOptions options;
  options.budget_s = 1;
  options.least_rounds = 1;
  const CalibrationResult result = calibrate_gpu(runtime, options, {Carrier::kCopies, 2048});
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
}

// Devices that take no time: what is measured, not how much it is.
TEST(GpuProbes, BothCarriersMeasureLinksDisturbancesAndWaiting) {
  for (const Carrier carrier : {Carrier::kCopies, Carrier::kExchanges}) {
    SCOPED_TRACE(name(carrier));
    HostRuntimeOptions host;
    host.devices = 2;
    host.kernels = [](const KernelCall&) {};
    HostRuntime runtime(host);
    CalibrationOptions options;
    options.budget_s = 1;
    options.least_rounds = 1;
    const CalibrationResult result = calibrate_gpu(runtime, options, {carrier, 512});
    EXPECT_TRUE(result.is_complete);
    for (const char* parameter : {"copy.bytes_per_s", "pcie.bytes_per_s", "wakeup_s",
                                  "attend_slowdown_by_transfer", "transfer_slowdown_by_attend"})
      EXPECT_TRUE(result.calibration.parameters.contains(parameter)) << parameter;
    EXPECT_EQ(result.machine.context.at("carrier"), name(carrier));
    EXPECT_EQ(result.machine.context.at("gpu attention, head dim 128"), "host");
  }
}

}  // namespace
}  // namespace ring::cuda
