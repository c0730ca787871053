// Every strategy is simulated to its end.
#include <gtest/gtest.h>

#include <string>

#include "core/legality.h"
#include "core/strategy.h"
#include "sim/reference_scenarios.h"
#include "sim/simulator.h"

namespace ring {
namespace {

Machine machine_of(int ranks) {
  Machine machine = ring_of_gpus(std::max(ranks, 2), 10e9, 1'000'000);
  AttendCost cost;
  cost.launch_s = 1e-6;
  cost.per_pair_dim_s = 1e-12;
  machine.attend[DType::kF32] = cost;
  machine.copy = {1e-6, 100e9};
  machine.merge_bytes_per_s = machine.finalize_bytes_per_s = 100e9;
  return machine;
}

TEST(SimulatedStrategies, EveryOpIsDone) {
  Problem problem;
  problem.heads = 8;
  problem.kv_heads = 4;
  problem.head_dim = 16;
  problem.head_dim_v = 12;
  for (const Strategy& strategy : all_strategies()) {
    for (const char* mask : {"full", "causal", "window:40", "docs:0,9,9,200,403", "decode:5"}) {
      for (const int ranks : {1, 2, 3, 5, 7, 8}) {
        problem.mask = Mask::parse(mask, 403);
        Tuning tuning;
        tuning.strategy = std::string(strategy.name);
        tuning.ranks = ranks;
        tuning.block_tokens = 32;
        tuning.blocks_per_message = ranks % 2;
        const auto legal = nearest_legal(problem, tuning);
        ASSERT_TRUE(legal.has_value()) << strategy.name;
        const RingProgram program = plan(problem, *legal);
        const SimulationResult result = simulate(program, machine_of(legal->ranks));
        EXPECT_EQ(result.ops, program.op_count()) << program.name << " " << mask;
        EXPECT_TRUE(result.metrics.is_complete);
        EXPECT_EQ(static_cast<int64_t>(result.timeline.slices.size()), program.op_count());
      }
    }
  }
}

}  // namespace
}  // namespace ring
