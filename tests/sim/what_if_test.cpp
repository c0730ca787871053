#include "sim/what_if.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "core/strategy.h"
#include "sim/reference_scenarios.h"

namespace ring {
namespace {

RingProgram ring_program(int ranks, Picoseconds compute_ps) {
  RingScenario scenario;
  scenario.ranks = ranks;
  scenario.compute_ps = compute_ps;
  return materialize(*ring_scenario(scenario));
}

const Effect& find(const WhatIf& answer, std::string_view parameter) {
  for (const Effect& effect : answer.effects) {
    if (effect.parameter == parameter) return effect;
  }
  ADD_FAILURE() << "no effect of " << parameter;
  return answer.effects.front();
}

// A step is 67108864 B / 25e9 B/s + 5 us, and computation of 1 ms hides behind it.
TEST(WhatIf, DerivativesOfACommunicationBoundRing) {
  constexpr double kWire = 67108864 / 25e9, kLatency = 5e-6;
  const WhatIf answer = what_if(ring_program(8, 1'000'000'000), ring_of_gpus(8));
  EXPECT_NEAR(find(answer, "link bandwidth").relative,
              (kWire / 1.1 + kLatency) / (kWire + kLatency) - 1, 1e-9);
  EXPECT_NEAR(find(answer, "link latency").relative, -0.1 * kLatency / (kWire + kLatency), 1e-9);
  EXPECT_EQ(find(answer, "compute speed").relative, 0);
  EXPECT_EQ(answer.effects.front().parameter, "link bandwidth") << "the greatest gain comes first";
}

TEST(WhatIf, DerivativesOfAComputeBoundRing) {
  const WhatIf answer = what_if(ring_program(8, 5'000'000'000), ring_of_gpus(8));
  EXPECT_NEAR(find(answer, "compute speed").relative, 1 / 1.1 - 1, 1e-9);
  EXPECT_EQ(find(answer, "link bandwidth").relative, 0);
  EXPECT_TRUE(answer.remedies.empty()) << "nothing is exposed";
}

// Hidden once 64 MiB take 1 ms - 5 us; found to one per cent, and a thousandth may stay exposed.
TEST(WhatIf, BandwidthAtWhichCommunicationVanishes) {
  const WhatIf answer = what_if(ring_program(8, 1'000'000'000), ring_of_gpus(8));
  ASSERT_EQ(answer.remedies.size(), 1U);
  EXPECT_EQ(answer.remedies[0].link_class, "link");
  EXPECT_EQ(answer.remedies[0].bytes_per_s, 25e9);
  ASSERT_TRUE(answer.remedies[0].vanishes_at_bytes_per_s);
  EXPECT_NEAR(*answer.remedies[0].vanishes_at_bytes_per_s / (67108864 / 0.995e-3), 1, 0.012);
}

// Four flows share a NIC: it would have to be four times as fast as a link of its own.
TEST(WhatIf, BandwidthOfASharedNic) {
  const Machine machine = nodes_with_one_nic(2, 4, {0, 4, 1, 5, 2, 6, 3, 7});
  const WhatIf answer = what_if(ring_program(8, 5'000'000'000), machine);
  ASSERT_EQ(answer.remedies.size(), 1U);
  EXPECT_EQ(answer.remedies[0].link_class, "nic");
  ASSERT_TRUE(answer.remedies[0].vanishes_at_bytes_per_s);
  EXPECT_NEAR(*answer.remedies[0].vanishes_at_bytes_per_s / (4 * 67108864 / 4.993e-3), 1, 0.012);
}

TEST(WhatIf, ALinkOfAnotherClassThatIsAsNarrowRemains) {
  Machine machine = ring_of_gpus(2);
  machine.topology = Topology();
  const int a = machine.topology.add_node({"a", NodeKind::kGpu});
  const int b = machine.topology.add_node({"b", NodeKind::kGpu});
  const int s = machine.topology.add_node({"s", NodeKind::kSwitch});
  machine.processors = {a, b};
  machine.topology.connect(a, s, 25e9, 0, "one");
  machine.topology.connect(s, b, 25e9, 0, "other");
  const WhatIf answer = what_if(ring_program(2, 1'000'000'000), machine);
  for (const Remedy& remedy : answer.remedies) EXPECT_FALSE(remedy.vanishes_at_bytes_per_s);
  EXPECT_FALSE(answer.remedies.empty());
}

TEST(WhatIf, NoBandwidthHelpsAgainstLatency) {
  const WhatIf answer =
      what_if(ring_program(4, 1'000'000'000), ring_of_gpus(4, 25e9, 2'000'000'000));
  ASSERT_EQ(answer.remedies.size(), 1U);
  EXPECT_FALSE(answer.remedies[0].vanishes_at_bytes_per_s);
}

TEST(WhatIf, TuningNeighboursAreSimulatedAndDeadlocksAreSaid) {
  Problem problem;
  problem.heads = problem.kv_heads = 2;
  problem.head_dim = problem.head_dim_v = 32;
  problem.mask = Mask::full(4096);
  Tuning tuning;
  tuning.ranks = 4;
  tuning.partition = "contiguous";
  tuning.block_tokens = 256;
  Machine machine = ring_of_gpus(4);
  machine.attend[DType::kF32] = {.launch_s = 50e-6, .per_pair_s = 1e-12};
  machine.merge_bytes_per_s = 1e12;
  const RingProgram program = plan(problem, tuning);
  const WhatIf answer = what_if(program, machine);
  bool has_shallow = false, has_larger = false;
  for (const Effect& effect : answer.effects) {
    if (effect.parameter == "depth" && effect.change == "2 -> 1") {
      has_shallow = true;
      EXPECT_FALSE(effect.can_finish);
      EXPECT_FALSE(effect.why_not.empty());
    }
    if (effect.parameter == "block size" && effect.change == "256 -> 512") {
      has_larger = true;
      EXPECT_LT(effect.relative, 0) << "half as many launches";
      Tuning larger = tuning;
      larger.block_tokens = 512;
      EXPECT_EQ(effect.makespan_ps, simulate(plan(problem, larger), machine).makespan_ps);
    }
  }
  EXPECT_TRUE(has_shallow && has_larger);
}

// Messages of one small block: latency per message exposes communication that larger blocks hide.
TEST(WhatIf, BlockSizeAtWhichCommunicationVanishes) {
  Problem problem;
  problem.heads = problem.kv_heads = 8;
  problem.mask = Mask::full(16384);
  Tuning tuning;
  tuning.ranks = 2;
  tuning.partition = "contiguous";
  tuning.block_tokens = 64;
  tuning.blocks_per_message = 1;
  Machine machine = ring_of_gpus(2, 100e9, 20'000'000);
  machine.attend[DType::kF32] = {.launch_s = 1e-6, .per_pair_dim_s = 2 / 200e12};
  machine.merge_bytes_per_s = 1e12;
  const WhatIf answer = what_if(plan(problem, tuning), machine);
  ASSERT_TRUE(answer.block);
  EXPECT_EQ(answer.block->block_tokens, 64);
  EXPECT_GT(answer.block->exposed_share, 0.01);
  EXPECT_GT(answer.block->best_tokens, 64);
  EXPECT_LT(answer.block->best_relative, 0);
  ASSERT_TRUE(answer.block->vanishes_at_tokens);
  EXPECT_GT(*answer.block->vanishes_at_tokens, 64);
}

TEST(WhatIf, StopsWhenAsked) {
  std::stop_source source;
  source.request_stop();
  WhatIfOptions options;
  options.simulation.stop = source.get_token();
  try {
    what_if(ring_program(8, 0), ring_of_gpus(8), options);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInterrupted);
  }
}

}  // namespace
}  // namespace ring
