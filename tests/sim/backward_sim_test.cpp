// Backward programs in the simulator: every op gets done, gradients hide behind computation.
#include <gtest/gtest.h>

#include "core/strategy.h"
#include "sim/analytic.h"
#include "sim/folding.h"
#include "sim/simulator.h"

namespace ring {
namespace {

Problem problem_of(Pass pass, int64_t tokens) {
  Problem problem;
  problem.heads = 8;
  problem.kv_heads = 2;
  problem.head_dim = problem.head_dim_v = 64;
  problem.dtype = DType::kBF16;
  problem.mask = Mask::full(tokens);
  problem.pass = pass;
  return problem;
}

/// Full duplex links between all, no cost but bytes and pairs.
Machine machine_of(int ranks, double bytes_per_s) {
  Machine machine;
  for (int rank = 0; rank < ranks; ++rank) {
    machine.processors.push_back(
        machine.topology.add_node({"gpu" + std::to_string(rank), NodeKind::kGpu, 0}));
  }
  for (int a = 0; a < ranks; ++a) {
    for (int b = a + 1; b < ranks; ++b) {
      machine.topology.connect(machine.processors[static_cast<size_t>(a)],
                               machine.processors[static_cast<size_t>(b)], bytes_per_s, 0, "link");
    }
  }
  machine.attend[DType::kBF16].per_pair_dim_s = 1e-12;
  machine.backward[DType::kBF16].per_pair_dim_s = 1e-12;
  machine.merge_bytes_per_s = 1e18;
  machine.copy = {0, 1e18};
  return machine;
}

TEST(BackwardSim, EveryOpIsDone) {
  for (const char* strategy :
       {"pass-kv", "double-ring:2", "multi-ring", "all-gather-kv", "pass-q", "bidirectional-ring",
        "ulysses:repeat", "ulysses-ring:2", "tensor-parallel", "local"}) {
    for (const char* mask : {"full", "causal", "window:100"}) {
      for (const BackwardMoves moves : {BackwardMoves::kKeys, BackwardMoves::kQueries}) {
        Problem problem = problem_of(Pass::kForwardBackward, 640);
        problem.mask = Mask::parse(mask, 640);
        if (strategy == std::string("tensor-parallel")) problem.kv_heads = 4;
        Tuning tuning;
        tuning.strategy = strategy;
        tuning.ranks = 4;
        tuning.block_tokens = 64;
        tuning.backward = moves;
        tuning.accumulation_steps = 2;
        tuning.optimizer_gap_ps = 1000;
        const RingProgram program = plan(problem, tuning);
        SimulationOptions options;
        options.keep_timeline = true;
        const SimulationResult result = simulate(program, machine_of(4, 1e10), options);
        EXPECT_TRUE(result.metrics.is_complete);
        EXPECT_EQ(static_cast<int64_t>(result.timeline.slices.size()), program.op_count())
            << strategy << " " << mask;
      }
    }
  }
}

// Infinitely fast links: P blocks backwards and nothing else. A hop that takes less than a block is
// hidden but for the last one, which brings gradients home.
TEST(BackwardSim, GradientsHideBehindComputation) {
  constexpr int kRanks = 4;
  Tuning tuning;
  tuning.ranks = kRanks;
  tuning.partition = "contiguous";
  tuning.block_tokens = 1024;
  tuning.backward = BackwardMoves::kKeys;
  const Problem problem = problem_of(Pass::kBackward, 4096);
  const RingProgram program = plan(problem, tuning);
  const auto time_ps = [&](double bytes_per_s) {
    return simulate(program, machine_of(kRanks, bytes_per_s), {}).makespan_ps;
  };
  // 1024 x 1024 pairs, 8 heads, 5 products of 64.
  const double block_ps = 1024.0 * 1024 * 8 * 5 * 64;
  EXPECT_NEAR(static_cast<double>(time_ps(1e18)), kRanks * block_ps, 1e-5 * block_ps);
  const double gradient_bytes = 1024.0 * 2 * 128 * 4;
  const double keys_bytes = gradient_bytes / 2;
  // Both on the link at once take less than a block.
  const double rate = 2 * (gradient_bytes + keys_bytes) / (block_ps * 1e-12);
  const double last_hop_ps = gradient_bytes / rate * 1e12;
  EXPECT_NEAR(static_cast<double>(time_ps(rate)), kRanks * block_ps + last_hop_ps, 0.01 * block_ps);
}

TEST(BackwardSim, FoldedEqualsWhole) {
  Tuning tuning;
  tuning.ranks = 8;
  tuning.partition = "contiguous";
  tuning.block_tokens = 64;
  for (const BackwardMoves moves : {BackwardMoves::kKeys, BackwardMoves::kQueries}) {
    tuning.backward = moves;
    const RingProgram program = plan(problem_of(Pass::kForwardBackward, 1024), tuning);
    EXPECT_EQ(find_rotation(program), 1);
  }
}

TEST(BackwardSim, TheOptimizerGapIsAddedOnce) {
  Tuning tuning;
  tuning.ranks = 2;
  tuning.block_tokens = 64;
  tuning.accumulation_steps = 3;
  const Problem problem = problem_of(Pass::kForwardBackward, 512);
  const Machine machine = machine_of(2, 1e10);
  const Picoseconds without = simulate(plan(problem, tuning), machine, {}).makespan_ps;
  tuning.optimizer_gap_ps = 12345678;
  EXPECT_EQ(simulate(plan(problem, tuning), machine, {}).makespan_ps, without + 12345678);
}

}  // namespace
}  // namespace ring
