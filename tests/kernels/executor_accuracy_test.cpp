// Results of whole ring programs against the fp64 oracle.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "core/partition.h"
#include "tests/kernels/executor_fixture.h"

namespace ring {
namespace {

using testing_support::oracle;
using testing_support::Output;
using testing_support::relative_rms;
using testing_support::run_once;

Problem llama_like(DType dtype, int64_t tokens) {
  Problem problem;
  problem.heads = 4;
  problem.kv_heads = 2;
  problem.head_dim = 64;
  problem.head_dim_v = 64;
  problem.dtype = dtype;
  problem.mask = Mask::causal(tokens);
  return problem;
}

Output run_ring(const Problem& problem, const DataSource& data, int ranks, Tokens block) {
  Tuning tuning;
  tuning.ranks = ranks;
  tuning.block_tokens = block;
  tuning.partition = ranks % 2 == 0 ? "zigzag" : "contiguous";
  return run_once(problem, tuning, data);
}

// One rounding to fp32 is 6e-8 relative; a dot product of 64 terms, an exp and a sum of up to 509
// rounded terms stay well below 4e-6 in the root mean square.
TEST(ExecutorAccuracy, Fp32ErrorIsSmallAtEveryRingSize) {
  const Problem problem = llama_like(DType::kF32, 509);
  const SeededData data(11);
  const Output exact = oracle(problem, data);
  for (const int ranks : {1, 2, 3, 4, 7, 8, 16}) {
    const Output actual = run_ring(problem, data, ranks, 24);
    EXPECT_LE(relative_rms(actual.out, exact.out), 4e-6) << ranks << " ranks";
    EXPECT_LE(relative_rms(actual.lse, exact.lse), 4e-6) << ranks << " ranks";
  }
}

// The keys are cut in the same places at every ring size, so only the order of the blocks differs:
// the error is the same but for chance.
TEST(ExecutorAccuracy, Fp32ErrorDoesNotGrowWithTheRing) {
  const Problem problem = llama_like(DType::kF32, 512);
  const SeededData data(12);
  const Output exact = oracle(problem, data);
  const double alone = relative_rms(run_ring(problem, data, 1, 16).out, exact.out);
  for (const int ranks : {2, 4, 8, 16}) {
    const double error = relative_rms(run_ring(problem, data, ranks, 16).out, exact.out);
    EXPECT_LE(error, 1.2 * alone) << ranks << " ranks";
  }
}

// Windows of documents over contiguous shards leave no row without keys, so the mask is made of
// segments by hand: queries below 10 and from 30 on see nothing, on ranks that see nothing at all
// and on ranks that see something.
TEST(ExecutorAccuracy, RowsWithoutKeysAreExactlyZero) {
  Problem problem = llama_like(DType::kF32, 40);
  problem.mask = Mask::from_segments(40, {{10, 30, 10, 0, 30, 0}});
  const SeededData data(13);
  const Output exact = oracle(problem, data);
  for (const int ranks : {1, 3, 8}) {
    Tuning tuning;
    tuning.ranks = ranks;
    tuning.partition = "contiguous";
    tuning.block_tokens = 7;
    const Output output = run_once(problem, tuning, data);
    const size_t token = static_cast<size_t>(problem.heads * problem.head_dim_v);
    for (size_t i = 0; i < output.out.size(); ++i) {
      const bool is_empty = i / token < 10 || i / token >= 30;
      if (is_empty) {
        EXPECT_EQ(output.out[i], 0.0);
      } else {
        EXPECT_NEAR(output.out[i], exact.out[i], 1e-5);
      }
    }
    for (size_t i = 0; i < output.lse.size(); ++i) {
      const size_t position = i / static_cast<size_t>(problem.heads);
      if (position < 10 || position >= 30) {
        EXPECT_EQ(output.lse[i], -INFINITY);
      }
    }
  }
}

struct Case {
  Problem problem;
  Tuning tuning;
  uint64_t seed = 0;
};

std::string text_of(const Case& c) {
  return "ranks " + std::to_string(c.tuning.ranks) + " block " +
         std::to_string(c.tuning.block_tokens) + " per message " +
         std::to_string(c.tuning.blocks_per_message) + " depth " +
         std::to_string(c.tuning.pipeline_depth) + " lanes " + std::to_string(c.tuning.lanes) +
         " partition " + c.tuning.partition + " mask " + c.problem.mask.text() + " tokens " +
         std::to_string(c.problem.seq_len()) + " heads " + std::to_string(c.problem.heads) + "/" +
         std::to_string(c.problem.kv_heads) + " dims " + std::to_string(c.problem.head_dim) + "," +
         std::to_string(c.problem.head_dim_v) + " batch " + std::to_string(c.problem.batch) + " " +
         std::string(name(c.problem.dtype));
}

std::string random_mask(int64_t tokens) {
  switch (*rc::gen::inRange(0, 6)) {
    case 0:
      return "full";
    case 1:
      return "window:" + std::to_string(*rc::gen::inRange<int64_t>(1, tokens + 2));
    case 2:
      return "chunked:" + std::to_string(*rc::gen::inRange<int64_t>(1, tokens + 2));
    case 3:
      return "prefix:" + std::to_string(*rc::gen::inRange<int64_t>(0, tokens + 1));
    default:
      return "causal";
  }
}

std::string random_partition(int64_t tokens, int ranks) {
  switch (*rc::gen::inRange(0, 4)) {
    case 0:
      return "contiguous";
    case 1:
      return "striped:" + std::to_string(*rc::gen::inRange(1, 6));
    case 2: {
      std::string text = "uneven:";
      int64_t left = tokens;
      for (int rank = 0; rank < ranks; ++rank) {
        const int64_t here = rank + 1 == ranks ? left : *rc::gen::inRange<int64_t>(0, left + 1);
        left -= here;
        text += (rank > 0 ? "," : "") + std::to_string(here);
      }
      return text;
    }
    default:
      return "zigzag";
  }
}

Case random_case() {
  Case c;
  const int64_t tokens = *rc::gen::inRange<int64_t>(1, 90);
  c.problem.batch = *rc::gen::inRange(1, 3);
  c.problem.kv_heads = *rc::gen::inRange(1, 3);
  c.problem.heads = c.problem.kv_heads * *rc::gen::inRange(1, 4);
  c.problem.head_dim = *rc::gen::element(1, 8, 20, 64);
  c.problem.head_dim_v = *rc::gen::element(1, 8, 24, 64);
  c.problem.dtype = *rc::gen::element(DType::kF32, DType::kBF16);
  c.problem.mask = Mask::parse(random_mask(tokens), tokens);
  c.tuning.ranks = *rc::gen::inRange(1, 7);
  c.tuning.block_tokens = *rc::gen::inRange(1, 40);
  c.tuning.blocks_per_message = *rc::gen::inRange(0, 4);
  c.tuning.pipeline_depth = *rc::gen::inRange(2, 5);
  c.tuning.lanes = *rc::gen::inRange(1, 3);
  c.tuning.partition = random_partition(tokens, c.tuning.ranks);
  c.seed = *rc::gen::arbitrary<uint64_t>();
  return c;
}

RC_GTEST_PROP(ExecutorProperty, EveryProgramGivesTheOraclesResult, ()) {
  const Case c = random_case();
  RC_LOG(text_of(c));
  const SeededData data(c.seed);
  const Output exact = oracle(c.problem, data);
  const Output actual = run_once(c.problem, c.tuning, data);
  RC_ASSERT(actual.out.size() == exact.out.size());
  // Values are at most 3.5 and weights sum to 1. fp32: 1e-5 is 50 roundings of the largest value.
  // bf16: one rounding of it.
  const double tolerance = c.problem.dtype == DType::kF32 ? 1e-5 : 3.5 * std::ldexp(1.0, -8);
  for (size_t i = 0; i < actual.out.size(); ++i)
    RC_ASSERT(std::fabs(actual.out[i] - exact.out[i]) <= tolerance);
  for (size_t i = 0; i < actual.lse.size(); ++i) {
    if (std::isinf(exact.lse[i])) {
      RC_ASSERT(actual.lse[i] == exact.lse[i]);
    } else {
      RC_ASSERT(std::fabs(actual.lse[i] - exact.lse[i]) <= 2e-5 * (1 + std::fabs(exact.lse[i])));
    }
  }
}

}  // namespace
}  // namespace ring
