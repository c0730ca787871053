// Gradients of whole ring programs against the fp64 oracle.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <string>
#include <tuple>

#include "core/error.h"
#include "kernels/cpu/isa.h"
#include "tests/kernels/allocation_count.h"
#include "tests/kernels/backward_fixture.h"

namespace ring {
namespace {

using testing_support::AllGradients;
using testing_support::gather_gradients;
using testing_support::oracle;
using testing_support::oracle_gradients;
using testing_support::Output;
using testing_support::relative_rms;
using testing_support::run_gradients;

// All dimensions differ from one another, and no length divides.
Problem uneven_problem(const std::string& mask, DType dtype = DType::kF32) {
  Problem problem;
  problem.batch = 2;
  problem.heads = 6;
  problem.kv_heads = 3;
  problem.head_dim = 24;
  problem.head_dim_v = 17;
  problem.mask = Mask::parse(mask, 101);
  problem.dtype = dtype;
  problem.pass = Pass::kForwardBackward;
  return problem;
}

// fp32: a gradient is a sum of up to 101 products of rounded terms; each term carries the error of
// a weight (about 1e-6, docs/numerics.md) times a few, and they add up like chance. In 16 bits the
// largest error is that of the stored output in delta: one rounding (2^-9 bf16, 2^-12 fp16) of
// values of about 1, which reach dQ and dK times weights; dV has none of it.
double tolerance(DType dtype) {
  return dtype == DType::kF32 ? 4e-6 : dtype == DType::kBF16 ? 0x1p-8 : 0x1p-11;
}

void expect_equal(const AllGradients& actual, const AllGradients& exact, DType dtype) {
  // The weights of dV are rounded only where products of bf16 are made in bf16.
  const bool pairs = cpu::uses_bf16_products(dtype);
  testing_support::expect_gradients(actual, exact, tolerance(dtype), pairs ? 0x1p-8 : 4e-6);
}

class BackwardRing : public testing::TestWithParam<
                         std::tuple<std::string, int, std::string, std::string, BackwardMoves>> {};

TEST_P(BackwardRing, GradientsEqualTheOracle) {
  const auto& [strategy, ranks, mask, partition, moves] = GetParam();
  Tuning tuning;
  tuning.strategy = strategy;
  tuning.ranks = ranks;
  tuning.partition = partition;
  tuning.block_tokens = 5;
  tuning.blocks_per_message = ranks % 2;
  tuning.backward = moves;
  const Problem problem = uneven_problem(mask);
  const SeededData data(21);
  expect_equal(run_gradients(problem, tuning, data), oracle_gradients(problem, data),
               problem.dtype);
}

const auto kMasks = testing::Values("full", "causal", "window:13", "chunked:40", "prefix:30",
                                    "docs:0,9,9,10,50,101");
const auto kPartitions = testing::Values("contiguous", "zigzag", "striped:3");
const auto kMoves = testing::Values(BackwardMoves::kKeys, BackwardMoves::kQueries);

std::string name_of(const testing::TestParamInfo<BackwardRing::ParamType>& info) {
  const auto& [strategy, ranks, mask, partition, moves] = info.param;
  std::string text = fmt::format("{}_{}_{}_{}_{}", strategy, ranks, mask, partition, name(moves));
  for (char& c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return text;
}

INSTANTIATE_TEST_SUITE_P(PassKv, BackwardRing,
                         testing::Combine(testing::Values("pass-kv"),
                                          testing::Values(2, 3, 5, 7, 8), kMasks, kPartitions,
                                          kMoves),
                         name_of);
INSTANTIATE_TEST_SUITE_P(OneRank, BackwardRing,
                         testing::Combine(testing::Values("pass-kv"), testing::Values(1), kMasks,
                                          testing::Values("contiguous"), kMoves),
                         name_of);
INSTANTIATE_TEST_SUITE_P(AllGather, BackwardRing,
                         testing::Combine(testing::Values("all-gather-kv"), testing::Values(7),
                                          kMasks, testing::Values("zigzag"), kMoves),
                         name_of);
INSTANTIATE_TEST_SUITE_P(MultiRing, BackwardRing,
                         testing::Combine(testing::Values("multi-ring:2"), testing::Values(5),
                                          kMasks, testing::Values("striped:3"), kMoves),
                         name_of);
INSTANTIATE_TEST_SUITE_P(DoubleRing, BackwardRing,
                         testing::Combine(testing::Values("double-ring:2"), testing::Values(6),
                                          kMasks, testing::Values("zigzag", "contiguous"), kMoves),
                         name_of);

TEST(Backward, StoredTypes) {
  for (const DType dtype : {DType::kBF16, DType::kF16}) {
    for (const BackwardMoves moves : {BackwardMoves::kKeys, BackwardMoves::kQueries}) {
      for (const int ranks : {1, 3, 8}) {
        const Problem problem = uneven_problem("causal", dtype);
        Tuning tuning;
        tuning.ranks = ranks;
        tuning.block_tokens = 16;
        tuning.backward = moves;
        const SeededData data(22);
        SCOPED_TRACE(fmt::format("{} {} {}", name(dtype), name(moves), ranks));
        expect_equal(run_gradients(problem, tuning, data), oracle_gradients(problem, data), dtype);
      }
    }
  }
}

// Gradients travel in fp32: the error does not grow with the ring.
TEST(Backward, ErrorDoesNotGrowWithTheRing) {
  Problem problem = uneven_problem("causal", DType::kBF16);
  const SeededData data(23);
  const AllGradients exact = oracle_gradients(problem, data);
  Tuning tuning;
  tuning.block_tokens = 8;
  tuning.ranks = 1;
  const AllGradients alone = run_gradients(problem, tuning, data);
  for (const int ranks : {2, 4, 8}) {
    tuning.ranks = ranks;
    const AllGradients actual = run_gradients(problem, tuning, data);
    EXPECT_LE(relative_rms(actual.dq, exact.dq), 1.2 * relative_rms(alone.dq, exact.dq)) << ranks;
    EXPECT_LE(relative_rms(actual.dk, exact.dk), 1.2 * relative_rms(alone.dk, exact.dk)) << ranks;
    EXPECT_LE(relative_rms(actual.dv, exact.dv), 1.5 * relative_rms(alone.dv, exact.dv)) << ranks;
  }
}

TEST(Backward, ThePassAloneGivesTheSameBytes) {
  Problem problem = uneven_problem("causal");
  Tuning tuning;
  tuning.ranks = 3;
  tuning.block_tokens = 8;
  const SeededData data(24);
  const AllGradients both = run_gradients(problem, tuning, data);
  problem.pass = Pass::kBackward;
  const AllGradients alone = run_gradients(problem, tuning, data);
  EXPECT_EQ(alone.dq, both.dq);
  EXPECT_EQ(alone.dk, both.dk);
  EXPECT_EQ(alone.dv, both.dv);
}

TEST(Backward, TheForwardPassBesideItGivesTheSameOutput) {
  Problem problem = uneven_problem("causal");
  Tuning tuning;
  tuning.ranks = 4;
  tuning.block_tokens = 8;
  const SeededData data(25);
  const Output both = testing_support::run_once(problem, tuning, data);
  problem.pass = Pass::kForward;
  const Output alone = testing_support::run_once(problem, tuning, data);
  EXPECT_EQ(both.out, alone.out);
  EXPECT_EQ(both.lse, alone.lse);
}

// Queries below 10 and from 30 on see nothing, keys outside 10 .. 30 are seen by nobody.
TEST(Backward, WhatSeesNothingHasExactlyZeroGradients) {
  Problem problem = uneven_problem("full");
  problem.mask = Mask::from_segments(40, {{10, 30, 10, 0, 30, 0}});
  const SeededData data(26);
  const AllGradients exact = oracle_gradients(problem, data);
  for (const BackwardMoves moves : {BackwardMoves::kKeys, BackwardMoves::kQueries}) {
    for (const int ranks : {1, 3, 8}) {
      Tuning tuning;
      tuning.ranks = ranks;
      tuning.partition = "contiguous";
      tuning.block_tokens = 7;
      tuning.backward = moves;
      const AllGradients actual = run_gradients(problem, tuning, data);
      expect_equal(actual, exact, problem.dtype);
      const auto expect_zeros = [&](const std::vector<double>& values, int64_t width) {
        for (size_t i = 0; i < values.size(); ++i) {
          const auto token = static_cast<int64_t>(i) / width % 40;
          if (token < 10 || token >= 30) {
            ASSERT_EQ(values[i], 0.0) << token;
          }
          ASSERT_TRUE(std::isfinite(values[i]));
        }
      };
      expect_zeros(actual.dq, problem.heads * problem.head_dim);
      expect_zeros(actual.dk, problem.kv_heads * problem.head_dim);
      expect_zeros(actual.dv, problem.kv_heads * problem.head_dim_v);
    }
  }
}

// Powers of two times a gradient are exact in fp32, and so are sums of equal terms of a sum that
// starts from zero: after 1, 2 and 4 equal passes. 3 is checked within rounding.
TEST(Backward, AccumulationSumsThePasses) {
  const Problem problem = uneven_problem("causal");
  const SeededData data(27);
  Tuning tuning;
  tuning.ranks = 3;
  tuning.block_tokens = 16;
  const AllGradients once = run_gradients(problem, tuning, data);
  tuning.optimizer_gap_ps = Picoseconds{50} * 1000 * 1000;
  for (const int steps : {2, 3}) {
    tuning.accumulation_steps = steps;
    AllGradients many = run_gradients(problem, tuning, data);
    for (auto* all : {&many.dq, &many.dk, &many.dv}) {
      for (double& value : *all) value /= steps;
    }
    testing_support::expect_gradients(many, once, 1e-6, 1e-6);
  }
}

TEST(Backward, RepeatedRunsGiveTheSameBytesAndAllocateNothing) {
  Problem problem = uneven_problem("window:30");
  for (const BackwardMoves moves : {BackwardMoves::kKeys, BackwardMoves::kQueries}) {
    Tuning tuning;
    tuning.ranks = 4;
    tuning.block_tokens = 8;
    tuning.blocks_per_message = 1;
    tuning.accumulation_steps = 2;
    tuning.backward = moves;
    const RingProgram program = plan(problem, tuning);
    const SeededData data(28);
    CpuExecutor executor(program, data);
    executor.run();
    const AllGradients first = gather_gradients(executor, problem);
    executor.run();
    const int64_t before = testing_support::allocation_count();
    for (int i = 0; i < 50; ++i) ASSERT_TRUE(executor.run().is_complete);
    EXPECT_EQ(testing_support::allocation_count(), before);
    const AllGradients last = gather_gradients(executor, problem);
    EXPECT_EQ(first.dq, last.dq);
    EXPECT_EQ(first.dk, last.dk);
    EXPECT_EQ(first.dv, last.dv);
  }
}

RC_GTEST_PROP(BackwardProperty, AnyTuningGivesTheOraclesGradients, ()) {
  const int64_t tokens = *rc::gen::inRange<int64_t>(1, 70);
  Problem problem;
  problem.kv_heads = *rc::gen::inRange(1, 3);
  problem.heads = problem.kv_heads * *rc::gen::inRange(1, 4);
  problem.head_dim = *rc::gen::element(1, 8, 20);
  problem.head_dim_v = *rc::gen::element(1, 12, 33);
  problem.pass = *rc::gen::element(Pass::kForwardBackward, Pass::kBackward);
  problem.mask = Mask::parse(
      *rc::gen::element<std::string>("full", "causal", "window:5", "chunked:9", "prefix:1"),
      tokens);
  Tuning tuning;
  tuning.ranks = *rc::gen::inRange(1, 7);
  tuning.partition = *rc::gen::element<std::string>("contiguous", "zigzag", "striped:2");
  tuning.block_tokens = *rc::gen::inRange(1, 40);
  tuning.blocks_per_message = *rc::gen::inRange(0, 4);
  tuning.pipeline_depth = *rc::gen::inRange(2, 5);
  tuning.lanes = *rc::gen::inRange(1, 3);
  tuning.accumulation_steps = *rc::gen::inRange(1, 3);
  tuning.backward =
      *rc::gen::element(BackwardMoves::kAuto, BackwardMoves::kKeys, BackwardMoves::kQueries);
  tuning.strategy = *rc::gen::element<std::string>(
      "pass-kv", "multi-ring", "all-gather-kv", "pass-q", "bidirectional-ring", "tensor-parallel");
  if (tuning.strategy == "tensor-parallel") {
    problem.kv_heads = tuning.ranks;
    problem.heads = tuning.ranks * *rc::gen::inRange(1, 3);
  }
  const SeededData data(*rc::gen::arbitrary<uint64_t>());
  const AllGradients exact = oracle_gradients(problem, data);
  const AllGradients actual = run_gradients(problem, tuning, data);
  const auto is_close = [&](const std::vector<double>& a, const std::vector<double>& b) {
    RC_ASSERT(a.size() == b.size());
    double largest = 1;
    for (const double value : b) largest = std::max(largest, std::fabs(value));
    // Sums of up to 70 x 3 terms of at most 3.5^2 with errors of 1e-6 each.
    for (size_t i = 0; i < a.size(); ++i) {
      RC_ASSERT(std::fabs(a[i] - tuning.accumulation_steps * b[i]) <=
                2e-5 * largest * tuning.accumulation_steps);
    }
  };
  is_close(actual.dq, exact.dq);
  is_close(actual.dk, exact.dk);
  is_close(actual.dv, exact.dv);
}

}  // namespace
}  // namespace ring
