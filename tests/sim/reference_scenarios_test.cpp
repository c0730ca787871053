// R, RJ and K: rings with exact answers, one message per step and sixteen.
#include "sim/reference_scenarios.h"

#include <gtest/gtest.h>

#include <numeric>

#include "sim/simulator.h"

namespace ring {
namespace {

Picoseconds makespan_ps(const RingScenario& scenario, const Machine& machine) {
  SimulationOptions options;
  options.keep_timeline = false;
  options.allow_folding = false;
  return simulate(*ring_scenario(scenario), machine, options).makespan_ps;
}

class PerMessages : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Messages, PerMessages, testing::Values(1, 2, 16));

TEST_P(PerMessages, RegularRingIsBoundByComputation) {
  for (const int ranks : {2, 3, 8, 64}) {
    const RingScenario scenario{.ranks = ranks, .messages = GetParam()};
    EXPECT_EQ(makespan_ps(scenario, ring_of_gpus(ranks)), (ranks - 1) * 5'000'000'000);
  }
}

TEST_P(PerMessages, RegularRingIsBoundByTheLinks) {
  for (const int ranks : {2, 3, 8, 64}) {
    const RingScenario scenario{
        .ranks = ranks, .messages = GetParam(), .compute_ps = 1'000'000'000};
    // 5 us and 64 MiB at 25e9 B/s: 2.68935456 ms.
    EXPECT_EQ(makespan_ps(scenario, ring_of_gpus(ranks)), (ranks - 1) * 2'689'354'560);
  }
}

TEST_P(PerMessages, IrregularRingIsExact) {
  const auto makespan_of = [](int ranks) {
    const RingScenario scenario{.ranks = ranks, .messages = GetParam(), .is_irregular = true};
    return makespan_ps(scenario, ring_of_gpus(ranks));
  };
  EXPECT_EQ(makespan_of(8), 37'587'340'000);
  EXPECT_EQ(makespan_of(64), 348'475'581'000);
  EXPECT_EQ(makespan_of(256), 1'404'528'470'000);
  if (GetParam() > 1) return;  // Seconds otherwise.
  EXPECT_EQ(makespan_of(1024), 5'629'045'596'000);
}

TEST_P(PerMessages, EagerAndRendezvousDiffer) {
  RingScenario scenario{
      .ranks = 64, .messages = GetParam(), .compute_ps = 2'000'000'000, .is_irregular = true};
  scenario.protocol = Protocol::kEager;
  EXPECT_EQ(makespan_ps(scenario, ring_of_gpus(64)), 173'390'519'520);
  scenario.protocol = Protocol::kRendezvous;
  EXPECT_EQ(makespan_ps(scenario, ring_of_gpus(64)), 175'761'801'560);
}

TEST_P(PerMessages, RingOrderDecidesHowManyHopsShareTheNic) {
  const RingScenario scenario{.ranks = 8, .messages = GetParam(), .compute_ps = 0};
  std::vector<int> order(8);
  std::iota(order.begin(), order.end(), 0);
  EXPECT_EQ(makespan_ps(scenario, nodes_with_one_nic(2, 4, order)), 7 * 2'691'354'560);
  // Four hops share each NIC.
  EXPECT_EQ(makespan_ps(scenario, nodes_with_one_nic(2, 4, {0, 4, 1, 5, 2, 6, 3, 7})),
            7 * 10'744'418'240);
}

}  // namespace
}  // namespace ring
