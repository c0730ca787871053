// KV heads gathered group by group: what the double buffer hides, against closed forms.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "core/strategy.h"
#include "sim/simulator.h"

namespace ring {
namespace {

constexpr int kRanks = 4;
constexpr double kPairDimSeconds = 1e-12;

/// Full duplex links between all, no cost but bytes and pairs.
Machine machine_of(double bytes_per_s) {
  Machine machine;
  for (int rank = 0; rank < kRanks; ++rank) {
    machine.processors.push_back(
        machine.topology.add_node({fmt::format("gpu{}", rank), NodeKind::kGpu, 0}));
  }
  for (int a = 0; a < kRanks; ++a) {
    for (int b = a + 1; b < kRanks; ++b) {
      machine.topology.connect(machine.processors[static_cast<size_t>(a)],
                               machine.processors[static_cast<size_t>(b)], bytes_per_s, 0, "link");
    }
  }
  machine.attend[DType::kBF16].per_pair_dim_s = kPairDimSeconds;
  machine.backward[DType::kBF16].per_pair_dim_s = kPairDimSeconds;
  machine.merge_bytes_per_s = machine.finalize_bytes_per_s = 1e18;
  machine.copy = {0, 1e18};
  return machine;
}

Problem problem_of(Pass pass) {
  Problem problem;
  problem.heads = 8;
  problem.kv_heads = 4;
  problem.head_dim = problem.head_dim_v = 64;
  problem.dtype = DType::kBF16;
  problem.mask = Mask::full(1024);
  problem.pass = pass;
  return problem;
}

RingProgram program_of(const Problem& problem, int groups, int depth) {
  Tuning tuning;
  tuning.strategy = fmt::format("all-gather-kv:{}", groups);
  tuning.ranks = kRanks;
  tuning.partition = "contiguous";
  tuning.block_tokens = problem.seq_len() / kRanks;
  tuning.pipeline_depth = depth;
  return plan(problem, tuning);
}

/// Time of one group with one shard on one rank.
double block_seconds(const Problem& problem, int groups) {
  const double shard = static_cast<double>(problem.seq_len()) / kRanks;
  return kPairDimSeconds * shard * shard * static_cast<double>(problem.heads / groups) *
         static_cast<double>(problem.head_dim + problem.head_dim_v);
}

double makespan_seconds(const RingProgram& program, double bytes_per_s) {
  const SimulationResult result = simulate(program, machine_of(bytes_per_s));
  EXPECT_EQ(result.ops, program.op_count());
  return seconds_from_picoseconds(result.makespan_ps);
}

// The P - 1 messages of a group take as long as its P blocks, T. With two groups in memory the
// links never rest: all is there after G T, and the last block follows. With one, every group waits
// for its last message.
TEST(HeadGroupsSim, TheNextGroupComesWhileThePresentOneIsComputed) {
  const Problem problem = problem_of(Pass::kForward);
  for (const int groups : {1, 2, 4}) {
    const double block_s = block_seconds(problem, groups), group_s = kRanks * block_s;
    const Bytes message = problem.kv_bytes(problem.seq_len() / kRanks) / groups;
    const double bytes_per_s = static_cast<double>(message) * (kRanks - 1) / group_s;
    const double two = makespan_seconds(program_of(problem, groups, 2), bytes_per_s);
    EXPECT_NEAR(two, groups * group_s + block_s, 1e-3 * group_s) << groups;
    const double one = makespan_seconds(program_of(problem, groups, 1), bytes_per_s);
    EXPECT_NEAR(one, groups * (group_s + block_s), 1e-3 * group_s) << groups;
  }
}

// Links twice as fast: the own block hides the first message, and nothing waits at all.
TEST(HeadGroupsSim, FastLinksAreHiddenWholly) {
  const Problem problem = problem_of(Pass::kForward);
  const double block_s = block_seconds(problem, 4);
  const Bytes message = problem.kv_bytes(problem.seq_len() / kRanks) / 4;
  const double bytes_per_s = 2 * static_cast<double>(message) / block_s;
  EXPECT_NEAR(makespan_seconds(program_of(problem, 4, 2), bytes_per_s), 4 * kRanks * block_s,
              1e-3 * block_s);
}

TEST(HeadGroupsSim, EveryOpOfBothPassesIsDone) {
  for (const int groups : {1, 2, 4}) {
    for (const int depth : {1, 2, 3}) {
      for (const Pass pass : {Pass::kForwardBackward, Pass::kBackward})
        makespan_seconds(program_of(problem_of(pass), groups, depth), 1e10);
    }
  }
}

}  // namespace
}  // namespace ring
