// From the samples of GPU probes to the machine: links by class, what disturbs what, waiting.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/kernels/gpu_fit_support.h"

namespace ring::test {
namespace {

constexpr double kCopyStart_s = 3e-6, kCopyRate = 1e12, kGap_s = 5e-6;
constexpr double kFastStart_s = 10e-6, kFastRate = 200e9, kSlowStart_s = 20e-6, kSlowRate = 10e9;
constexpr double kAttendSlowdown = 1.2, kTransferSlowdown = 1.5;

double seconds_of(const cuda::GpuProbe& gpu, const Op& op) {
  const ProbeProgram& probe = gpu.probe;
  const auto bytes = static_cast<double>(op.bytes);
  const double fast_s = kFastStart_s + bytes / kFastRate;
  if (op.kind == OpKind::kReceive || op.kind == OpKind::kSend) {
    if (probe.transfer == "transfer") return kCopyStart_s + bytes / kCopyRate;
    if (probe.transfer == "transfer-host") return kSlowStart_s + bytes / kSlowRate;
    return fast_s * (probe.transfer == "transfer-beside-attention" ? kTransferSlowdown : 1);
  }
  if (op.kind == OpKind::kAttend) {
    const double alone_s = 50e-6 + static_cast<double>(op.visible_pairs) * 1e-11;
    // Keys that came with the first step do not disturb the next one.
    const bool is_disturbed = probe.attend == "attend-beside-transfer" && op.step == 0;
    return alone_s * (is_disturbed ? kAttendSlowdown : 1);
  }
  return 20e-6;
}

const cuda::LinkClasses kLinks = {{"nvlink", {{0, 1}, {2, 3}}},
                                  {"host", {{0, 2}, {0, 3}, {1, 2}, {1, 3}}}};

TEST(GpuMachineFit, EveryClassOfLinksHasItsOwnCurve) {
  const Machine machine =
      fitted_machine(4, kLinks, {.carrier = cuda::Carrier::kExchanges}, kGap_s, seconds_of);
  EXPECT_EQ(machine.transfer, TransferKind::kLinks);
  EXPECT_NEAR(machine.copy.bytes_per_s, kCopyRate, 1e-2 * kCopyRate);
  const Route near = machine.topology.route(machine.processors[2], machine.processors[3]);
  EXPECT_EQ(near.links.size(), 1U);
  EXPECT_NEAR(near.bytes_per_s, kFastRate, 1e-2 * kFastRate);
  EXPECT_NEAR(static_cast<double>(near.latency_ps), kFastStart_s * 1e12, 2e5);
  const Route far = machine.topology.route(machine.processors[1], machine.processors[3]);
  EXPECT_EQ(far.links.size(), 2U);
  EXPECT_NEAR(far.bytes_per_s, kSlowRate, 1e-2 * kSlowRate);
  EXPECT_NEAR(static_cast<double>(far.latency_ps), kSlowStart_s * 1e12, 4e5);
  EXPECT_EQ(machine.topology.links()[static_cast<size_t>(near.links[0])].link_class, "nvlink");
}

TEST(GpuMachineFit, DisturbancesAndWaitingAreThoseOfTheProbes) {
  const Machine machine =
      fitted_machine(4, kLinks, {.carrier = cuda::Carrier::kExchanges}, kGap_s, seconds_of);
  EXPECT_NEAR(machine.attend_slowdown_by_transfer, kAttendSlowdown, 1e-6);
  EXPECT_NEAR(machine.transfer_slowdown_by_attend, kTransferSlowdown, 2e-2);
  EXPECT_NEAR(machine.wakeup_s, kGap_s, 1e-9);
  EXPECT_TRUE(machine.provenance.contains("nvlink.bytes_per_s"));
  // Messages over links count for the range in which the machine is trusted.
  EXPECT_EQ(machine.trusted.at("message_bytes").high, 128 << 20);
}

TEST(GpuMachineFit, OneDeviceHasNoLinks) {
  const Machine machine = fitted_machine(1, {}, {}, kGap_s, seconds_of);
  EXPECT_EQ(machine.transfer, TransferKind::kReceiverCopy);
  EXPECT_TRUE(machine.topology.links().empty());
  EXPECT_NEAR(machine.attend_slowdown_by_transfer, kAttendSlowdown, 1e-6);
}

}  // namespace
}  // namespace ring::test
