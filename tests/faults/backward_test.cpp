// Faults that backward runs show: F22, F23, F24.
#include <gtest/gtest.h>

#include <string>

#include "tests/kernels/backward_fixture.h"

namespace ring {
namespace {

using testing_support::AllGradients;
using testing_support::FunctionData;
using testing_support::oracle_gradients;
using testing_support::relative_rms;
using testing_support::run_gradients;

// A gradient is a sum of few products whose terms carry the error of a weight, about 1e-6
// (docs/numerics.md).
void expect_close(const AllGradients& actual, const AllGradients& exact) {
  testing_support::expect_gradients(actual, exact, 4e-6, 4e-6);
}

// K and V of the step at hand, not those of step 0, make the gradients.
TEST(Faults, F22StaleKeys) {
  Problem problem;
  problem.heads = problem.kv_heads = problem.head_dim = problem.head_dim_v = 1;
  problem.scale = 1;
  problem.mask = Mask::full(2);
  problem.pass = Pass::kForwardBackward;
  const FunctionData data([](Tensor tensor, int64_t, int64_t position, int64_t) {
    switch (tensor) {
      case Tensor::kQuery:
        return position == 0 ? 1.0F : 2.0F;
      case Tensor::kKey:
        return 0.0F;
      case Tensor::kValue:
        return position == 0 ? 1.0F : 3.0F;
      case Tensor::kOutputGradient:
        break;
    }
    return 1.0F;
  });
  for (const BackwardMoves moves : {BackwardMoves::kKeys, BackwardMoves::kQueries}) {
    Tuning tuning;
    tuning.ranks = 2;
    tuning.backward = moves;
    const AllGradients actual = run_gradients(problem, tuning, data);
    EXPECT_NEAR(actual.dv[0], 1, 1e-6);
    EXPECT_NEAR(actual.dv[1], 1, 1e-6);
    EXPECT_NEAR(actual.dk[0], -1.5, 1e-6);
    EXPECT_NEAR(actual.dk[1], 1.5, 1e-6);
    EXPECT_NEAR(actual.dq[0], 0, 1e-6);
    EXPECT_NEAR(actual.dq[1], 0, 1e-6);
  }
}

// Against one rank that goes through the ring's code too. 1e-5 is the user's demand.
TEST(Faults, F24RingAgainstOneRank) {
  Problem problem;
  problem.heads = 4;
  problem.kv_heads = 2;
  problem.head_dim = problem.head_dim_v = 64;
  problem.mask = Mask::causal(256);
  problem.pass = Pass::kForwardBackward;
  const SeededData data(29);
  Tuning tuning;
  tuning.ranks = 1;
  const AllGradients alone = run_gradients(problem, tuning, data);
  for (const int ranks : {2, 4}) {
    for (const char* partition : {"contiguous", "zigzag"}) {
      tuning.ranks = ranks;
      tuning.partition = partition;
      const AllGradients ring = run_gradients(problem, tuning, data);
      EXPECT_LT(relative_rms(ring.dq, alone.dq), 1e-5) << ranks << partition;
      EXPECT_LT(relative_rms(ring.dk, alone.dk), 1e-5) << ranks << partition;
      EXPECT_LT(relative_rms(ring.dv, alone.dv), 1e-5) << ranks << partition;
    }
  }
}

// Transposed twice goes unseen when heads = tokens, and not when all dimensions differ.
TEST(Faults, F23HeadsEqualTokens) {
  Problem problem;
  problem.heads = problem.kv_heads = 16;
  problem.head_dim = problem.head_dim_v = 64;
  problem.mask = Mask::causal(16);
  problem.pass = Pass::kForwardBackward;
  const SeededData data(30);
  Tuning tuning;
  tuning.ranks = 3;
  tuning.block_tokens = 4;
  for (const char* strategy : {"pass-kv", "pass-q", "all-gather-kv", "ulysses:repeat"}) {
    tuning.strategy = strategy;
    tuning.ranks = tuning.strategy == "ulysses:repeat" ? 4 : 3;
    expect_close(run_gradients(problem, tuning, data), oracle_gradients(problem, data));
  }
}

TEST(Faults, F23AllDimensionsDiffer) {
  Problem problem;
  problem.batch = 2;
  problem.heads = 6;
  problem.kv_heads = 3;
  problem.head_dim = problem.head_dim_v = 16;
  problem.mask = Mask::causal(12);
  problem.pass = Pass::kForwardBackward;
  const SeededData data(31);
  Tuning tuning;
  tuning.block_tokens = 4;
  for (const char* strategy : {"pass-kv", "pass-q", "bidirectional-ring", "ulysses"}) {
    tuning.strategy = strategy;
    tuning.ranks = 3;
    expect_close(run_gradients(problem, tuning, data), oracle_gradients(problem, data));
  }
}

}  // namespace
}  // namespace ring
