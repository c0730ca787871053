#include "sim/analytic.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "core/error.h"
#include "core/strategy.h"
#include "sim/reference_scenarios.h"
#include "sim/simulator.h"

namespace ring {
namespace {

/// Attention on `tokens` with a cost per pair alone, so that a full shard pair takes `pair_s` n^2.
Problem problem_of(Mask mask) {
  Problem problem;
  problem.heads = problem.kv_heads = 1;
  problem.head_dim = problem.head_dim_v = 16;
  problem.mask = std::move(mask);
  return problem;
}

Machine machine_of(int ranks, double bytes_per_s, Picoseconds latency_ps, double pair_s) {
  Machine machine = ring_of_gpus(ranks, bytes_per_s, latency_ps);
  machine.attend[DType::kF32].per_pair_s = pair_s;
  machine.merge_bytes_per_s = 1e18;  // finalizing takes no time that counts
  return machine;
}

Tuning tuning_of(int ranks, const char* partition, Tokens block) {
  Tuning tuning;
  tuning.ranks = ranks;
  tuning.partition = partition;
  tuning.block_tokens = block;
  return tuning;
}

TEST(Analytic, SteppedRingIsTheReferenceScenario) {
  for (const double compute_ms : {1.0, 5.0}) {
    RingScenario scenario;
    scenario.compute_ps = std::llround(compute_ms * 1e9);
    const Picoseconds expected =
        stepped_ring_ps({scenario.ranks, scenario.compute_ps, 2'689'354'560});
    EXPECT_NEAR(
        static_cast<double>(simulate(*ring_scenario(scenario), ring_of_gpus(8)).makespan_ps),
        static_cast<double>(expected), 7);
  }
  EXPECT_EQ(stepped_ring_ps({8, 1'000'000'000, 2'689'354'560}), 7 * Picoseconds{2'689'354'560});
}

// Rounding: one picosecond per op of the path, for computation and transfer alike.
RC_GTEST_PROP(Analytic, PassKvTakesTheLongerOfBothPerStep, ()) {
  const int ranks = *rc::gen::inRange(2, 9);
  const Tokens shard = 16 * *rc::gen::inRange(1, 9);
  const double bytes_per_s = *rc::gen::element(1e8, 1e9, 1e10);
  const Picoseconds latency_ps = *rc::gen::element(0, 1'000'000, 20'000'000);
  const Problem problem = problem_of(Mask::full(shard * ranks));
  const Machine machine = machine_of(ranks, bytes_per_s, latency_ps, 1e-9);
  const RingProgram program = plan(problem, tuning_of(ranks, "contiguous", shard));
  const UniformRing ring{
      ranks, picoseconds_from_seconds(1e-9 * static_cast<double>(shard * shard)),
      latency_ps +
          picoseconds_from_seconds(static_cast<double>(problem.kv_bytes(shard)) / bytes_per_s)};
  const SimulationResult result = simulate(program, machine);
  RC_ASSERT(std::abs(result.makespan_ps - pass_kv_ps(ring)) <= 2 * ranks);
}

TEST(Analytic, ContiguousCausalNeedsHalfAUnitLessThanP) {
  for (const int ranks : {2, 4, 8}) {
    const CausalLoad load = contiguous_causal(ranks, 64);
    EXPECT_EQ(load.longest_pairs, (ranks - 1) * 64 * 64 + 64 * 65 / 2);
    const Machine machine = machine_of(ranks, 1e18, 0, 1e-9);
    const RingProgram program =
        plan(problem_of(Mask::causal(64 * ranks)), tuning_of(ranks, "contiguous", 64));
    EXPECT_NEAR(static_cast<double>(simulate(program, machine).makespan_ps),
                static_cast<double>(load.longest_pairs) * 1000, 4 * ranks);
  }
  // With long shards the diagonal is half a unit: 2.0 of 3.5 at four ranks, 4.0 of 7.5 at eight.
  EXPECT_NEAR(contiguous_causal(4, 1 << 20).efficiency, 2.0 / 3.5, 1e-6);
  EXPECT_NEAR(contiguous_causal(8, 1 << 20).efficiency, 4.0 / 7.5, 1e-6);
}

TEST(Analytic, ZigzagReachesTheIdeal) {
  for (const int ranks : {2, 3, 4, 8}) {
    const CausalLoad load = zigzag_causal(ranks, 64);
    EXPECT_EQ(load.longest_pairs * ranks, load.total_pairs);
    EXPECT_EQ(load.efficiency, 1);
    const Machine machine = machine_of(ranks, 1e18, 0, 1e-9);
    const RingProgram program =
        plan(problem_of(Mask::causal(64 * ranks)), tuning_of(ranks, "zigzag", 32));
    EXPECT_NEAR(static_cast<double>(simulate(program, machine).makespan_ps),
                static_cast<double>(load.longest_pairs) * 1000, 8 * ranks);
  }
  EXPECT_THROW(zigzag_causal(4, 63), Error);
}

TEST(Analytic, CountsBeyond32Bits) {
  const CausalLoad load = contiguous_causal(8, int64_t{1} << 27);
  EXPECT_EQ(load.total_pairs, (int64_t{1} << 29) * ((int64_t{1} << 30) + 1));
  EXPECT_THROW(contiguous_causal(8, int64_t{1} << 40), Error);
}

// On a fast link with a launch cost per block, gathering first can win: the closed forms say so.
TEST(Analytic, AllGatherLosesWhereTransfersCouldHide) {
  EXPECT_EQ(all_gather_kv_ps({4, 100, 30}), 3 * 30 + 4 * 100);
  EXPECT_GT(all_gather_kv_ps({4, 100, 30}), pass_kv_ps({4, 100, 30}));
  EXPECT_EQ(all_gather_kv_ps({1, 100, 30}), 100);
  EXPECT_EQ(pass_kv_ps({1, 100, 30}), 100);
}

TEST(Analytic, HidingBandwidthAndTokensAreWhereBothAreEqual) {
  const double bandwidth = hiding_bandwidth(67108864, 5'000'000, 1'000'000'000).value();
  EXPECT_NEAR(67108864 / bandwidth + 5e-6, 1e-3, 1e-12);
  EXPECT_FALSE(hiding_bandwidth(1, 1000, 1000));
  EXPECT_EQ(hiding_bandwidth(0, 5, 10), 0.0);
  const Tokens tokens = hiding_tokens(1e-9, 5e-6, 4096, 1e9);
  const auto gap = [](double n) { return 1e-9 * n * n - 5e-6 - 4096 * n / 1e9; };
  EXPECT_GE(gap(static_cast<double>(tokens)), 0);
  EXPECT_LT(gap(static_cast<double>(tokens - 1)), 0);
}

RC_GTEST_PROP(LowerBounds, NoSimulationIsShorter, ()) {
  const int ranks = *rc::gen::inRange(1, 6);
  const Tokens tokens = *rc::gen::inRange(ranks, 600);
  const bool is_causal = *rc::gen::arbitrary<bool>();
  Machine machine = machine_of(std::max(ranks, 2), *rc::gen::element(1e8, 1e10),
                               *rc::gen::element(0, 3'000'000), 1e-9);
  machine.attend[DType::kF32].launch_s = *rc::gen::element(0.0, 2e-6);
  machine.merge_bytes_per_s = 1e10;
  if (*rc::gen::arbitrary<bool>()) {  // several ranks on a core, messages copied by the receiver
    machine.processors.resize(static_cast<size_t>(*rc::gen::inRange(1, 3)));
    machine.transfer = TransferKind::kReceiverCopy;
    machine.copy = {1e-6, 2e9};
    machine.memory_bytes_per_s = *rc::gen::element(0.0, 3e9);
    machine.wakeup_s = 2e-6;
  }
  Tuning tuning = tuning_of(ranks, *rc::gen::element("contiguous", "zigzag", "striped"),
                            *rc::gen::inRange(8, 200));
  tuning.blocks_per_message = *rc::gen::inRange(0, 3);
  tuning.pipeline_depth = *rc::gen::inRange(2, 4);
  const RingProgram program =
      plan(problem_of(is_causal ? Mask::causal(tokens) : Mask::full(tokens)), tuning);
  const LowerBounds bounds = lower_bounds(program, machine);
  const SimulationResult result = simulate(program, machine);
  // A picosecond of rounding per op of a lane.
  RC_ASSERT(bounds.longest_ps() <= result.makespan_ps + program.op_count());
  RC_ASSERT(bounds.compute_ps > 0);
}

TEST(LowerBounds, AreReachedByTheRingsTheyAreAbout) {
  RingScenario scenario;
  scenario.compute_ps = 5'000'000'000;
  const RingProgram busy = materialize(*ring_scenario(scenario));
  EXPECT_EQ(lower_bounds(busy, ring_of_gpus(8)).compute_ps, 7 * scenario.compute_ps);
  scenario.compute_ps = 0;
  const RingProgram sending = materialize(*ring_scenario(scenario));
  // All bytes of seven steps, but the latency only once.
  EXPECT_NEAR(static_cast<double>(lower_bounds(sending, ring_of_gpus(8)).link_ps),
              7 * 67108864 / 0.025 + 5e6, 8);
  const Machine shared = nodes_with_one_nic(2, 4, {0, 4, 1, 5, 2, 6, 3, 7});
  const LowerBounds bounds = lower_bounds(sending, shared);
  EXPECT_NEAR(static_cast<double>(bounds.link_ps), 7 * 4 * 67108864 / 0.025 + 7e6, 8);
}

TEST(LowerBounds, MemoryOfTheFullestRank) {
  Problem problem = problem_of(Mask::full(8 * 1024));
  problem.heads = 4;
  problem.kv_heads = 2;
  problem.dtype = DType::kBF16;
  const Tuning tuning = tuning_of(8, "contiguous", 256);
  Machine machine = machine_of(8, 1e9, 0, 1e-9);
  machine.attend[DType::kBF16] = machine.attend[DType::kF32];
  const RingProgram program = plan(problem, tuning);
  // Queries, output, K and V at home and in two buffers in bf16; state and lse in fp32.
  const Bytes expected = 1024 * 4 * (16 + 16) * 2 + 1024 * 4 * 4 + 3 * 1024 * 2 * (16 + 16) * 2 +
                         1024 * 4 * (16 + 2) * 4;
  EXPECT_EQ(lower_bounds(program, machine).rank_bytes, expected);
  machine.memory_capacity_bytes = expected;
  EXPECT_TRUE(lower_bounds(program, machine).fits);
  machine.memory_capacity_bytes = expected - 1;
  EXPECT_FALSE(lower_bounds(program, machine).fits);
}

}  // namespace
}  // namespace ring
