// Faults of time, order, memory and counts: F10, F25, F29, F30.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "core/efficiency.h"
#include "core/error.h"
#include "core/formats/timeline_json.h"
#include "core/memory_model.h"
#include "core/payload.h"
#include "core/program_check.h"
#include "core/program_text.h"
#include "core/strategy.h"
#include "sim/reference_scenarios.h"
#include "sim/simulator.h"

namespace ring {
namespace {

constexpr Picoseconds kUnit = 1'000'000'000;
constexpr int64_t kShard = 2000;

/// A whole block of kShard x kShard pairs of one head takes one unit, links take no time.
Machine instant_ring(int ranks) {
  Machine machine = ring_of_gpus(ranks, 1e30, 0);
  AttendCost cost;
  cost.per_pair_s = 1e-3 / (static_cast<double>(kShard) * static_cast<double>(kShard));
  machine.attend[DType::kF32] = cost;
  machine.merge_bytes_per_s = machine.finalize_bytes_per_s = 1e30;
  return machine;
}

Problem one_head(const Mask& mask) {
  Problem problem;
  problem.heads = problem.kv_heads = 1;
  problem.head_dim = problem.head_dim_v = 1;
  problem.mask = mask;
  return problem;
}

SimulationResult causal_ring(int ranks, const std::string& partition) {
  Tuning tuning;
  tuning.ranks = ranks;
  tuning.partition = partition;
  tuning.block_tokens = kShard;
  tuning.pipeline_depth = ranks;
  return simulate(plan(one_head(Mask::causal(kShard * ranks)), tuning), instant_ring(ranks));
}

// The diagonal of a block is 0.5 + 1 / (2 kShard) of it: everything is that much longer.
TEST(Faults, F10ContiguousShardsWaitForTheLast) {
  for (const int ranks : {2, 4, 8}) {
    const SimulationResult result = causal_ring(ranks, "contiguous");
    const double units = static_cast<double>(result.makespan_ps) / kUnit;
    EXPECT_NEAR(units, ranks - 0.5, 1e-3);
    EXPECT_NEAR(ranks / 2.0 / units, (ranks / 2.0) / (ranks - 0.5), 1e-3) << "efficiency";
    EXPECT_NEAR(static_cast<double>(result.metrics.ranks[0].compute_ps) / kUnit, 0.5, 1e-3);
  }
}

TEST(Faults, F10ZigzagKeepsEverybodyBusy) {
  for (const int ranks : {2, 3, 4, 5, 8}) {
    const double units = static_cast<double>(causal_ring(ranks, "zigzag").makespan_ps) / kUnit;
    EXPECT_NEAR(units, ranks / 2.0, 1e-3 * ranks) << ranks;
  }
}

std::string ring_step(int ranks, const std::string& order) {
  std::string text = fmt::format("ranks {}\nlanes 2\n", ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    const std::string send = fmt::format("send to={} msg=0 bytes=1000000", (rank + 1) % ranks);
    const std::string receive =
        fmt::format("receive from={} msg=0 bytes=1000000", (rank + ranks - 1) % ranks);
    const bool sends_first = order == "send first" || rank % 2 == 0;
    const char* const second = order == "grouped" ? "L1" : "L0";
    text += fmt::format("r{0} L0 {1}\nr{0} {2} {3}\n", rank, sends_first ? send : receive, second,
                        sends_first ? receive : send);
  }
  return text;
}

TEST(Faults, F25AllSendFirstIsADeadlockOfAllRanks) {
  for (const int ranks : {2, 3, 4, 5, 8}) {
    const auto faults = check_program(parse_program(ring_step(ranks, "send first")));
    ASSERT_EQ(faults.size(), 1U);
    EXPECT_EQ(faults[0].kind, FaultKind::kDeadlock);
    EXPECT_EQ(faults[0].ops.size(), static_cast<size_t>(ranks)) << "the cycle of ranks";
    EXPECT_THROW(simulate(parse_program(ring_step(ranks, "send first")), ring_of_gpus(ranks)),
                 Error);
  }
}

// Sends that do not wait for their receivers are no deadlock.
TEST(Faults, F25AllSendFirstWithRoomForTheMessages) {
  for (const int ranks : {2, 3, 4, 5, 8}) {
    RingProgram program = parse_program(ring_step(ranks, "send first"));
    for (RankProgram& rank : program.rank_programs) {
      for (Op& op : rank.ops) {
        if (op.kind == OpKind::kSend) op.protocol = Protocol::kEager;
      }
    }
    EXPECT_TRUE(check_program(program).empty());
    EXPECT_GT(simulate(program, ring_of_gpus(ranks)).makespan_ps, 0);
  }
}

TEST(Faults, F25HopTimesOfTheOtherOrders) {
  for (const int ranks : {2, 3, 4, 5, 8}) {
    const Machine machine = ring_of_gpus(ranks, 1e9, 1'000'000);
    const Picoseconds hop_ps = kUnit + 1'000'000;  // 1 MB at 1 GB/s and 1 us.
    const auto makespan_ps = [&](const char* order) {
      return simulate(parse_program(ring_step(ranks, order)), machine).makespan_ps;
    };
    EXPECT_EQ(makespan_ps("grouped"), hop_ps);
    EXPECT_EQ(makespan_ps("even odd"), (ranks % 2 == 0 ? 2 : 3) * hop_ps);
  }
}

// 4 (2^27 + 1)^2 = 2^56 + 2^30 + 4 needs 55 bits, two more than a double has.
TEST(Faults, F29FlopsAreCountedToTheLastOne) {
  constexpr int64_t kTokens = (int64_t{1} << 27) + 1;
  Tuning tuning;
  tuning.ranks = 3;
  tuning.block_tokens = kTokens;
  const SimulationResult result =
      simulate(plan(one_head(Mask::full(kTokens)), tuning), instant_ring(3));
  EXPECT_EQ(result.metrics.flops, (Flops{1} << 56) + (Flops{1} << 30) + 4);
  EXPECT_EQ(metrics_to_json(result.metrics).at("flops").dump(), "72057595111669764");
}

// Each rank holds as many tokens as the device did: together they do 8 x 8 times its work.
TEST(Faults, F30OneDeviceIsDividedByTheRanks) {
  EXPECT_NEAR(parallel_efficiency(1 / 2470.0, 1 / 144.0, 8, 8 * 8), 0.466, 1e-3);
}

// With a fixed cost per launch, small blocks are bound by it.
TEST(Faults, F30EfficiencyFallsWithTheShard) {
  constexpr int kRanks = 8;
  Machine machine = ring_of_gpus(kRanks, 100e9, 5'000'000);
  AttendCost cost;
  cost.launch_s = 20e-6;
  cost.per_pair_dim_s = 1e-14;
  machine.attend[DType::kF32] = cost;
  machine.merge_bytes_per_s = machine.finalize_bytes_per_s = 1e12;
  double last = 1;
  for (const int64_t shard : {16384, 8192, 4096, 2048, 1024, 512}) {
    Problem problem = one_head(Mask::full(shard * kRanks));
    problem.head_dim = problem.head_dim_v = 128;
    Tuning tuning;
    tuning.ranks = kRanks;
    tuning.block_tokens = shard;
    tuning.partition = "contiguous";
    const double ring_s =
        1e-12 * static_cast<double>(simulate(plan(problem, tuning), machine).makespan_ps);
    tuning.ranks = 1;
    tuning.block_tokens = shard * kRanks;
    const double alone_s =
        1e-12 * static_cast<double>(simulate(plan(problem, tuning), machine).makespan_ps);
    const double efficiency = parallel_efficiency(alone_s, ring_s, kRanks);
    EXPECT_LT(efficiency, last) << shard;
    last = efficiency;
  }
  EXPECT_LT(last, 0.5);
}

// Beyond its own shard a rank holds two blocks of K and V, the fp32 state, output and lse, however
// many steps there are.
TEST(Faults, F30MemoryIsADoubleBuffer) {
  constexpr Tokens kTokens = 8192;
  constexpr Bytes kBlock = 33'554'432;
  for (const int ranks : {2, 8}) {
    Problem problem;
    problem.heads = 32;
    problem.kv_heads = 8;
    problem.dtype = DType::kBF16;
    problem.mask = Mask::full(kTokens * ranks);
    EXPECT_EQ(problem.kv_bytes(kTokens), kBlock);
    Tuning tuning;
    tuning.ranks = ranks;
    tuning.block_tokens = kTokens;
    const RingProgram program = plan(problem, tuning);
    const RankStorage& storage = program.rank_programs[0].storage;
    const Bytes own = payload_bytes(problem, Payload::kQuery, {0, 32}, kTokens) + kBlock +
                      payload_bytes(problem, Payload::kOutput, {0, 32}, kTokens);
    const Bytes lse = 32 * kTokens * 4;
    EXPECT_EQ(rank_bytes(problem, storage) - own - lse,
              2 * kBlock + state_bytes(problem, {0, 32}, kTokens));
  }
}

}  // namespace
}  // namespace ring
