// Faults of merging partial results: F1, F3, F4.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "kernels/cpu/attend.h"
#include "tests/kernels/executor_fixture.h"

namespace ring {
namespace {

constexpr float kEmpty = -std::numeric_limits<float>::infinity();

struct Partial {
  float out, lse;
};

Partial merged(Partial a, Partial b) {
  cpu::merge_output(&a.out, &a.lse, &b.out, &b.lse, 1, 1);
  return a;
}

TEST(Faults, F1LogarithmsOfSumsAreNotAdded) {
  const Partial sum = merged({0, std::log(2.0F)}, {1, std::log(3.0F)});
  EXPECT_NEAR(sum.lse, 1.609438, 1e-6);
  EXPECT_NEAR(sum.out, 0.6, 1e-6);
}

TEST(Faults, F3EmptyPartialResults) {
  const Partial none = merged({0, kEmpty}, {0, kEmpty});
  EXPECT_EQ(none.out, 0);
  EXPECT_EQ(none.lse, kEmpty);
  for (const Partial& sum : {merged({0, kEmpty}, {3, 0.5F}), merged({3, 0.5F}, {0, kEmpty})}) {
    EXPECT_EQ(sum.out, 3);
    EXPECT_EQ(sum.lse, 0.5F);
  }
}

// The first query sees the keys of the last of 8 ranks only, whichever way results travel.
TEST(Faults, F3TheOnlyVisibleBlockComesLast) {
  Problem problem;
  problem.heads = problem.kv_heads = 1;
  problem.head_dim = problem.head_dim_v = 1;
  problem.mask = Mask::from_segments(16, {{0, 16, 14, 0, 16, 0}});
  Tuning tuning;
  tuning.ranks = 8;
  tuning.partition = "contiguous";
  for (const char* strategy : {"pass-kv", "pass-q", "bidirectional-ring", "tree-decode"}) {
    tuning.strategy = strategy;
    const auto output =
        testing_support::run_once(problem, tuning, testing_support::mean_position_data());
    for (const double value : output.out) EXPECT_NEAR(value, 14.5, 1e-6) << strategy;
    for (const double lse : output.lse) EXPECT_NEAR(lse, std::log(2.0), 1e-6) << strategy;
  }
}

/// Output and lse of one row, after a block of `keys` keys of which it sees `seen`.
Partial after_block(int64_t keys, int32_t seen) {
  const std::vector<float> ones(static_cast<size_t>(std::max<int64_t>(keys, 1)), 1.0F);
  float u = 7, m = 7, l = 7;
  const cpu::AttendState state{&u, &m, &l};
  cpu::reset_state(state, 1, 1);
  cpu::AttendShape shape;
  shape.q_rows = 1;
  shape.kv_rows = keys;
  shape.dim_qk = shape.dim_v = 1;
  const cpu::KeySpan span{0, seen};
  cpu::Workspace workspace;
  cpu::attend(shape, {ones.data(), 1, 1}, {ones.data(), 1, 1}, {ones.data(), 1, 1}, &span, state,
              workspace);
  Partial result{7, 7};
  cpu::finalize(shape, state, {&result.out, 1, 1}, &result.lse);
  return result;
}

TEST(Faults, F4RowsWithoutKeysHaveMinusInfinity) {
  for (const Partial& empty : {after_block(0, 0), after_block(5, 0)}) {
    EXPECT_EQ(empty.out, 0);
    EXPECT_EQ(empty.lse, kEmpty);
    const Partial sum = merged(empty, {1, 0});
    EXPECT_EQ(sum.out, 1);
    EXPECT_EQ(sum.lse, 0);
  }
}

}  // namespace
}  // namespace ring
