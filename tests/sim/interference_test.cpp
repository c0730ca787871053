// Attention and transfers slow each other down for exactly as long as both are under way.
#include <gtest/gtest.h>

#include "core/error.h"
#include "core/strategy.h"
#include "sim/reference_scenarios.h"
#include "sim/simulator.h"

namespace ring {
namespace {

// Two ranks with 100 tokens each and one head; every attend has 10,000 pairs of 1 us: 10 ms.
constexpr Picoseconds kAttendPs = 10'000'000'000;
// A shard has 100 * (64 + 64) * 4 = 51,200 bytes: at 51.2 MB/s 1 ms, after 1 us of latency.
constexpr Picoseconds kLatencyPs = 1'000'000, kBytesPs = 1'000'000'000;

Machine two_gpus() {
  Machine machine = ring_of_gpus(2, 51.2e6, kLatencyPs);
  AttendCost cost;
  cost.per_pair_s = 1e-6;
  machine.attend[DType::kF32] = cost;
  machine.merge_bytes_per_s = 1e30;
  for (Node& node : machine.topology.mutable_nodes()) node.host = 0;
  return machine;
}

SimulationResult run(const Machine& machine) {
  Problem problem;
  problem.heads = problem.kv_heads = 1;
  problem.head_dim = problem.head_dim_v = 64;
  problem.mask = Mask::full(200);
  Tuning tuning;
  tuning.ranks = 2;
  tuning.partition = "contiguous";
  tuning.block_tokens = 100;
  return simulate(plan(problem, tuning), machine);
}

Picoseconds transfer_ps(const SimulationResult& result) {
  for (const Slice& slice : result.timeline.slices) {
    if (slice.kind == OpKind::kReceive) return slice.end_ps - slice.start_ps;
  }
  return -1;
}

TEST(Interference, NoneByDefault) {
  const SimulationResult result = run(two_gpus());
  EXPECT_EQ(result.makespan_ps, 2 * kAttendPs);
  EXPECT_EQ(transfer_ps(result), kLatencyPs + kBytesPs);
}

TEST(Interference, AllProcessorsOfAHostAttendMoreSlowly) {
  Machine machine = two_gpus();
  machine.attend_contention = 1.25;
  EXPECT_EQ(run(machine).makespan_ps, 2 * kAttendPs * 5 / 4);
  // A host of four with two at work: a third of the way.
  for (int i = 0; i < 2; ++i) {
    machine.processors.push_back(machine.topology.add_node({"idle", NodeKind::kGpu, 0}));
  }
  EXPECT_NEAR(static_cast<double>(run(machine).makespan_ps), 2 * kAttendPs * (1 + 0.25 / 3), 2);
  // Alone on its host: none.
  machine.topology.mutable_nodes()[0].host = 7;
  machine.topology.mutable_nodes()[1].host = 8;
  EXPECT_EQ(run(machine).makespan_ps, 2 * kAttendPs);
}

TEST(Interference, AttentionIsSlowerWhileATransferIsUnderWay) {
  Machine machine = two_gpus();
  machine.attend_slowdown_by_transfer = 2;
  // Half of the transfer's time is lost.
  EXPECT_EQ(run(machine).makespan_ps, 2 * kAttendPs + (kLatencyPs + kBytesPs) / 2);
}

TEST(Interference, TransfersAreSlowerWhileARankAttends) {
  Machine machine = two_gpus();
  machine.transfer_slowdown_by_attend = 4;
  EXPECT_EQ(transfer_ps(run(machine)), kLatencyPs + 4 * kBytesPs);
  machine.transfer_slowdown_by_attend = 16;
  // The first attend hides 9.999 ms of 16: then the rest runs at full speed.
  const Picoseconds left_ps = (16 * kBytesPs - (kAttendPs - kLatencyPs)) / 16;
  const SimulationResult result = run(machine);
  EXPECT_NEAR(static_cast<double>(transfer_ps(result)), static_cast<double>(kAttendPs + left_ps),
              2);
  EXPECT_NEAR(static_cast<double>(result.makespan_ps), static_cast<double>(2 * kAttendPs + left_ps),
              2);
}

TEST(Interference, CostsThatAreNotStatedAreErrors) {
  Machine machine = two_gpus();
  machine.attend.clear();
  EXPECT_THROW(run(machine), Error);
  machine = two_gpus();
  machine.merge_bytes_per_s = 0;
  EXPECT_THROW(run(machine), Error);
  machine = two_gpus();
  machine.processors.clear();
  EXPECT_THROW(run(machine), Error);
}

}  // namespace
}  // namespace ring
