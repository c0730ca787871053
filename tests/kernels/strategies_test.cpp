// Every strategy in which keys travel, run for real, against the fp64 oracle.
#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "tests/kernels/executor_fixture.h"

namespace ring {
namespace {

using testing_support::oracle;
using testing_support::Output;
using testing_support::relative_rms;
using testing_support::run_once;

class KvStrategies
    : public testing::TestWithParam<std::tuple<std::string, int, std::string, std::string>> {};

// All dimensions differ from one another, and no length divides.
TEST_P(KvStrategies, EqualTheOracle) {
  const auto& [strategy, ranks, mask, partition] = GetParam();
  Problem problem;
  problem.batch = 2;
  problem.heads = 6;
  problem.kv_heads = 3;
  problem.head_dim = 24;
  problem.head_dim_v = 17;
  problem.mask = Mask::parse(mask, 101);
  Tuning tuning;
  tuning.strategy = strategy;
  tuning.ranks = ranks;
  tuning.partition = partition;
  tuning.block_tokens = 5;
  tuning.blocks_per_message = 1;
  const SeededData data(21);
  const Output exact = oracle(problem, data);
  const Output actual = run_once(problem, tuning, data);
  EXPECT_LE(relative_rms(actual.out, exact.out), 4e-6);
}

const auto kMasks = testing::Values("full", "causal", "window:13", "docs:0,9,9,50,101");
const auto kPartitions = testing::Values("contiguous", "zigzag", "striped:3");

INSTANTIATE_TEST_SUITE_P(AnyRing, KvStrategies,
                         testing::Combine(testing::Values("pass-kv", "multi-ring", "all-gather-kv"),
                                          testing::Values(3, 5, 8), kMasks, kPartitions));
INSTANTIATE_TEST_SUITE_P(DoubleRing, KvStrategies,
                         testing::Combine(testing::Values("double-ring:3"), testing::Values(3, 6),
                                          kMasks, kPartitions));

}  // namespace
}  // namespace ring
