// The reasons that are given for simulated runs whose causes are known.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "core/blame.h"
#include "core/bubbles.h"
#include "core/error.h"
#include "core/machine_presets.h"
#include "core/program_text.h"
#include "core/slack.h"
#include "core/strategy.h"
#include "sim/reference_scenarios.h"
#include "sim/simulator.h"

namespace ring {
namespace {

constexpr Picoseconds kMillisecond = 1'000'000'000;
/// 64 MiB over 25e9 B/s, and 7 us on the way between nodes.
constexpr Picoseconds kAloneHop = 2'691'354'560;

struct Explained {
  RingProgram program;
  SimulationResult result;
  CriticalPath path;
  Blame blame;
  RunAccount account;
  std::vector<Picoseconds> slack;
};

Explained explain(RingProgram program, const Machine& machine,
                  const SimulationOptions& options = {}) {
  Explained run;
  run.program = std::move(program);
  run.result = simulate(run.program, machine, options);
  const RunGraph graph(run.program, run.result.timeline);
  const AloneTimes alone = alone_times(graph, machine);
  run.path = critical_path(graph);
  run.blame = blame_path(graph, run.path, alone);
  run.account = account_run(graph, alone);
  run.slack = slacks(graph);
  Picoseconds sum_ps = 0;
  for (const BlameItem& item : run.blame.items) sum_ps += item.time_ps;
  EXPECT_EQ(sum_ps, run.result.makespan_ps);
  for (const RankAccount& rank : run.account.ranks) {
    EXPECT_EQ(std::accumulate(rank.bubble_ps.begin(), rank.bubble_ps.end(), rank.busy_ps),
              run.result.makespan_ps);
  }
  return run;
}

RingProgram ring_program(int ranks, Picoseconds compute_ps) {
  RingScenario scenario;
  scenario.ranks = ranks;
  scenario.compute_ps = compute_ps;
  return materialize(*ring_scenario(scenario));
}

const BlameItem& longest(const Blame& blame, BlameKind kind) {
  for (const BlameItem& item : blame.items) {
    if (item.kind == kind) return item;
  }
  ADD_FAILURE() << "nothing is blamed on " << name(kind);
  return blame.items.front();
}

TEST(Reasons, SharedNicIsNamedInTheBadOrder) {
  const Machine machine = nodes_with_one_nic(2, 4, {0, 4, 1, 5, 2, 6, 3, 7});
  const Explained run = explain(ring_program(8, 0), machine);
  // Seven steps of 10.74441824 ms, of which a hop alone would take 2.69135456 ms.
  EXPECT_NEAR(static_cast<double>(run.result.makespan_ps), 7 * 10.74441824e9, 7);
  const BlameItem& top = run.blame.items.front();
  EXPECT_EQ(top.kind, BlameKind::kContention);
  ASSERT_GE(top.link, 0);
  EXPECT_THAT(describe_link(machine.topology, top.link), ::testing::HasSubstr("NIC n"));
  EXPECT_NEAR(static_cast<double>(run.blame.of(BlameKind::kContention)),
              7 * (10.74441824e9 - static_cast<double>(kAloneHop)), 7 * 8);
}

TEST(Reasons, GoodOrderHasNoContention) {
  const Machine machine = nodes_with_one_nic(2, 4, {0, 1, 2, 3, 4, 5, 6, 7});
  const Explained run = explain(ring_program(8, 0), machine);
  EXPECT_EQ(run.blame.of(BlameKind::kContention), 0);
  const BlameItem& top = run.blame.items.front();
  EXPECT_EQ(top.kind, BlameKind::kHop);
  EXPECT_TRUE((top.peer == 3 && top.rank == 4) || (top.peer == 7 && top.rank == 0));
}

TEST(Reasons, TopologyChangesResults) {
  const RingProgram program = ring_program(8, 0);
  const auto time = [&](const char* machine) {
    Machine preset = machine_preset(machine);
    preset.wakeup_s = 0;
    return static_cast<double>(simulate(program, preset).makespan_ps);
  };
  const double in_order = time("cluster:nodes=2,gpus=4");
  EXPECT_NEAR(in_order, 7 * 2.69135456e9, 7);
  EXPECT_NEAR(time("cluster:nodes=2,gpus=4,order=0-4-1-5-2-6-3-7"), 7 * 10.74441824e9, 7);
  // One NIC per GPU: interleaving costs nothing any more.
  EXPECT_NEAR(time("cluster:nodes=2,gpus=4,nics=4,order=0-4-1-5-2-6-3-7"), 7 * 2.69135456e9, 7);
  EXPECT_NEAR(time("cluster:nodes=1,gpus=8"), 7 * (2e6 + 67108864 / 0.3), 7);
  // Two ranks share a half duplex link only where a link carries both directions.
  const RingProgram pair = ring_program(2, 0);
  const double both = static_cast<double>(
      simulate(pair, machine_preset("ring:ranks=2,half-duplex=yes")).makespan_ps);  // one step
  EXPECT_NEAR(both, 5e6 + 2 * 67108864 / 0.025, 2);
}

TEST(Reasons, LateRankIsNamedInAStragglerRun) {
  SimulationOptions options;
  options.disturbances.slow_ranks = {{3, 2.0}};
  const Explained run = explain(ring_program(8, 5 * kMillisecond), ring_of_gpus(8), options);
  EXPECT_EQ(run.result.makespan_ps, 7 * 10 * kMillisecond);
  const BlameItem& imbalance = longest(run.blame, BlameKind::kImbalance);
  EXPECT_EQ(imbalance.rank, 3);
  // Per step 10 ms against a mean of (7 x 5 + 10) / 8.
  EXPECT_EQ(imbalance.time_ps, 7 * (10 * kMillisecond - 5625 * kMillisecond / 1000));
  EXPECT_EQ(run.blame.of(BlameKind::kContention), 0);
  EXPECT_EQ(run.account.ranks[3].of(BubbleKind::kImbalance), 0);
  EXPECT_GT(run.account.ranks[4].of(BubbleKind::kImbalance), 20 * kMillisecond);
}

TEST(Reasons, LateStartIsNamed) {
  SimulationOptions options;
  options.disturbances.late_starts = {{2, 3 * kMillisecond}};
  const Explained run = explain(ring_program(4, 5 * kMillisecond), ring_of_gpus(4), options);
  EXPECT_EQ(run.result.makespan_ps, 18 * kMillisecond);
  EXPECT_EQ(longest(run.blame, BlameKind::kLateStart).rank, 2);
  EXPECT_EQ(run.blame.of(BlameKind::kLateStart), 3 * kMillisecond);
  EXPECT_EQ(run.account.ranks[2].of(BubbleKind::kLateStart), 3 * kMillisecond);
}

TEST(Reasons, SlowLinkIsAHopNotContention) {
  SimulationOptions options;
  options.disturbances.slow_links = {{1, 2, 4.0}};
  const Explained run = explain(ring_program(4, kMillisecond), ring_of_gpus(4), options);
  EXPECT_EQ(run.blame.of(BlameKind::kContention), 0);
  const BlameItem& hop = longest(run.blame, BlameKind::kHop);
  EXPECT_EQ(hop.peer, 1);
  EXPECT_EQ(hop.rank, 2);
}

TEST(Reasons, ExposedRingIsCommunication) {
  const Explained run = explain(ring_program(8, kMillisecond), ring_of_gpus(8));
  EXPECT_NEAR(static_cast<double>(run.result.makespan_ps), 7 * 2.68935456e9, 7);
  const RankAccount& rank = run.account.ranks[0];
  EXPECT_EQ(rank.busy_ps, 7 * kMillisecond);
  // Every step but the last hides 1 ms of its hop; what follows the last computation is drain.
  EXPECT_NEAR(static_cast<double>(rank.of(BubbleKind::kCommunication)), 6 * 1.68935456e9, 7);
  EXPECT_NEAR(static_cast<double>(rank.of(BubbleKind::kDrain)), 1.68935456e9, 7);
  ASSERT_EQ(run.account.hops.size(), 8U);
}

Machine free_links(int ranks, double per_pair_s) {
  Machine machine = ring_of_gpus(ranks, 1e18, 0);
  machine.attend[DType::kF32].per_pair_s = per_pair_s;
  machine.merge_bytes_per_s = 1e18;
  return machine;
}

Problem small_problem(Tokens tokens, Mask (*mask)(int64_t)) {
  Problem problem;
  problem.heads = problem.kv_heads = 1;
  problem.head_dim = problem.head_dim_v = 16;
  problem.mask = mask(tokens);
  return problem;
}

// P - 1/2 units against P / 2: what is beyond the mean is imbalance, of the last rank.
TEST(Reasons, ContiguousCausalIsImbalance) {
  constexpr int kRanks = 8;
  constexpr double kPairs = 64.0 * 64.0;
  Tuning tuning;
  tuning.ranks = kRanks;
  tuning.partition = "contiguous";
  tuning.block_tokens = 64;
  const Explained run =
      explain(plan(small_problem(64 * kRanks, Mask::causal), tuning), free_links(kRanks, 1e-9));
  const double longest_ps = (kRanks - 1) * kPairs * 1000 + (kPairs + 64) / 2 * 1000;
  EXPECT_NEAR(static_cast<double>(run.result.makespan_ps), longest_ps, 20 * kRanks);
  const double mean_ps = longest_ps - (kRanks - 1) * kPairs * 1000 / 2;
  EXPECT_EQ(longest(run.blame, BlameKind::kImbalance).rank, kRanks - 1);
  EXPECT_NEAR(static_cast<double>(run.blame.of(BlameKind::kImbalance)), longest_ps - mean_ps,
              20 * kRanks);
  EXPECT_GT(run.account.ranks[0].of(BubbleKind::kImbalance), run.result.makespan_ps * 9 / 10);
}

// Two ranks and one buffer: the next message waits until the one before has been attended to.
TEST(Reasons, ShallowPipelineIsCreditWait) {
  // A block takes 64 x 512 x 0.1 ns = 3.3 us, its message of 8 KiB 8.2 us.
  Machine machine = free_links(2, 1e-10);
  for (Link& link : machine.topology.mutable_links()) link.bytes_per_s = 1e9;
  Tuning tuning;
  tuning.ranks = 2;
  tuning.partition = "contiguous";
  tuning.block_tokens = 64;
  tuning.blocks_per_message = 1;
  const Problem problem = small_problem(64 * 2 * 8, Mask::full);
  tuning.pipeline_depth = 1;
  const Explained shallow = explain(plan(problem, tuning), machine);
  tuning.pipeline_depth = 2;
  const Explained deep = explain(plan(problem, tuning), machine);
  EXPECT_LT(deep.result.makespan_ps, shallow.result.makespan_ps);
  EXPECT_GT(shallow.account.ranks[0].of(BubbleKind::kCreditWait) +
                shallow.blame.of(BlameKind::kCreditWait),
            0);
  EXPECT_EQ(deep.blame.of(BlameKind::kCreditWait), 0);
}

TEST(Reasons, UnfinishedRankIsAnErrorThatNamesWhatItWaitsFor) {
  const RingProgram program = parse_program(
      "ranks 2\nlanes 3\n"
      "r0 L0 compute time=1ms\n"
      "r1 L2 receive from=0 msg=7 bytes=1024\n");
  try {
    simulate(program, ring_of_gpus(2));
    FAIL() << "an unfinished run is not a result";
  } catch (const Error& error) {
    EXPECT_NE(exit_code(error.kind()), 0);
    EXPECT_THAT(error.what(), ::testing::HasSubstr("rank 1"));
    EXPECT_THAT(error.what(), ::testing::HasSubstr("waits for message 7 from rank 0"));
  }
}

}  // namespace
}  // namespace ring
