// Folded and unfolded simulations of the same program give the same answer.
#include "sim/folding.h"

#include <gtest/gtest.h>

#include <numeric>

#include "core/strategy.h"
#include "sim/reference_scenarios.h"
#include "sim/simulator.h"

namespace ring {
namespace {

SimulationOptions metrics_only(bool allow_folding) {
  SimulationOptions options;
  options.keep_timeline = false;
  options.allow_folding = allow_folding;
  return options;
}

/// Simulates both ways, expects equality, and returns how many ranks the fold simulated.
template <typename Program>
int expect_equal(const Program& program, const Machine& machine) {
  const SimulationResult all = simulate(program, machine, metrics_only(false));
  const SimulationResult folded = simulate(program, machine, metrics_only(true));
  EXPECT_EQ(folded.makespan_ps, all.makespan_ps);
  EXPECT_EQ(folded.ops, all.ops);
  EXPECT_EQ(folded.messages, all.messages);
  EXPECT_EQ(folded.metrics.flops, all.metrics.flops);
  EXPECT_EQ(folded.metrics.bytes_sent, all.metrics.bytes_sent);
  EXPECT_DOUBLE_EQ(folded.metrics.overlap, all.metrics.overlap);
  EXPECT_EQ(folded.metrics.ranks.size(), all.metrics.ranks.size());
  for (size_t rank = 0; rank < all.metrics.ranks.size(); ++rank) {
    EXPECT_EQ(folded.metrics.ranks[rank].compute_ps, all.metrics.ranks[rank].compute_ps);
    EXPECT_EQ(folded.metrics.ranks[rank].communication_ps,
              all.metrics.ranks[rank].communication_ps);
    EXPECT_EQ(folded.metrics.ranks[rank].exposed_ps, all.metrics.ranks[rank].exposed_ps);
    EXPECT_EQ(folded.metrics.ranks[rank].finish_ps, all.metrics.ranks[rank].finish_ps);
  }
  EXPECT_EQ(folded.links.size(), all.links.size());
  for (size_t i = 0; i < std::min(all.links.size(), folded.links.size()); ++i) {
    EXPECT_EQ(folded.links[i].link, all.links[i].link);
    EXPECT_EQ(folded.links[i].bytes, all.links[i].bytes);
  }
  return folded.simulated_ranks;
}

Machine with_costs(Machine machine) {
  machine.attend[DType::kF32] = {5e-6, 0, 1.0 / 300e12, 0, 0, 0};
  machine.copy = {1e-6, 1e12};
  machine.merge_bytes_per_s = 1e12;
  return machine;
}

Problem full_problem(Tokens tokens) {
  Problem problem;
  problem.mask = Mask::full(tokens);
  return problem;
}

TEST(Folding, RegularRingsFoldToOneRank) {
  for (const int messages : {1, 16}) {
    for (const Picoseconds compute_ps : {0, 5'000'000}) {
      const RingScenario scenario{
          .ranks = 12, .messages = messages, .compute_ps = compute_ps * 1000};
      EXPECT_EQ(expect_equal(*ring_scenario(scenario), ring_of_gpus(12)), 1);
    }
  }
}

TEST(Folding, IrregularRingsDoNotFold) {
  EXPECT_EQ(expect_equal(*ring_scenario({.ranks = 12, .is_irregular = true}), ring_of_gpus(12)),
            12);
}

TEST(Folding, AttentionWithAFullMaskFolds) {
  for (const int64_t blocks_per_message : {0, 1}) {
    Tuning tuning;
    tuning.ranks = 6;
    tuning.partition = "contiguous";
    tuning.block_tokens = 64;
    tuning.blocks_per_message = blocks_per_message;
    const Problem problem = full_problem(6 * 256);
    const Machine machine = with_costs(ring_of_gpus(6));
    EXPECT_EQ(expect_equal(*plan_source(problem, tuning), machine), 1);
    // A materialized program is compared op by op instead.
    const RingProgram program = plan(problem, tuning);
    EXPECT_EQ(find_rotation(program), 1);
    EXPECT_EQ(expect_equal(program, machine), 1);
  }
}

TEST(Folding, UnequalShardsAndCausalMasksDoNotFold) {
  Tuning tuning;
  tuning.ranks = 4;
  tuning.block_tokens = 64;
  tuning.partition = "contiguous";
  const Machine machine = with_costs(ring_of_gpus(4));
  EXPECT_EQ(expect_equal(*plan_source(full_problem(1001), tuning), machine), 4);
  Problem causal = full_problem(1024);
  causal.mask = Mask::causal(1024);
  EXPECT_EQ(expect_equal(*plan_source(causal, tuning), machine), 4);
  EXPECT_EQ(find_rotation(plan(causal, tuning)), 0);
}

TEST(Folding, UnequalLinksDoNotFold) {
  Machine machine = ring_of_gpus(8);
  EXPECT_EQ(expect_equal(*ring_scenario({.ranks = 8}), machine), 1);
  machine.topology.mutable_links()[4].bytes_per_s /= 2;
  EXPECT_EQ(expect_equal(*ring_scenario({.ranks = 8, .compute_ps = 0}), machine), 8);
}

TEST(Folding, OneOrbitOfLinksCarriesBothWaysOfAStride) {
  // Rank r sends to r + 1 over a switch that all share: one backplane, an orbit of its own.
  Machine star;
  const int center = star.topology.add_node({"switch", NodeKind::kSwitch, 0, 40e9});
  for (int i = 0; i < 6; ++i) {
    star.processors.push_back(star.topology.add_node({"g" + std::to_string(i), NodeKind::kGpu, 0}));
    star.topology.connect(star.processors.back(), center, 25e9, 1'000'000, "link");
  }
  EXPECT_EQ(expect_equal(*ring_scenario({.ranks = 6, .compute_ps = 0}), star), 1);
  // Six transfers share the backplane: 6.67e9 B/s each.
  const SimulationResult result =
      simulate(*ring_scenario({.ranks = 6, .compute_ps = 0}), star, metrics_only(true));
  EXPECT_NEAR(static_cast<double>(result.makespan_ps),
              5 * (6 * 67'108'864 / 40e9 * 1e12 + 2'000'000), 100);
}

TEST(Folding, ThePeriodGrowsToThatOfTheMachine) {
  // The ring repeats from rank to rank, the machine only from node to node.
  std::vector<int> order(16);
  std::iota(order.begin(), order.end(), 0);
  const Machine machine = with_costs(nodes_with_one_nic(4, 4, order));
  Tuning tuning;
  tuning.ranks = 16;
  tuning.partition = "contiguous";
  const auto source = plan_source(full_problem(16 * 256), tuning);
  EXPECT_EQ(source->rotation(), 1);
  EXPECT_EQ(expect_equal(*source, machine), 4);
}

}  // namespace
}  // namespace ring
