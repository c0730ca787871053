// Every strategy, run for real, against the fp64 oracle.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <tuple>

#include "tests/kernels/executor_fixture.h"

namespace ring {
namespace {

using testing_support::oracle;
using testing_support::Output;
using testing_support::relative_rms;
using testing_support::run_once;

/// A strategy, and heads that it can split.
struct Way {
  std::string strategy;
  int ranks;
  int64_t heads, kv_heads;
};

std::string way_name(const Way& way) {
  std::string text = way.strategy + "_x" + std::to_string(way.ranks);
  for (char& c : text) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return text;
}

class Strategies : public testing::TestWithParam<Way> {};

void expect_equal(const Output& actual, const Output& exact) {
  // As in executor_accuracy_test.cpp.
  testing_support::expect_output(actual, exact, 4e-6, 2e-5);
}

// All dimensions differ from one another, and no length divides.
TEST_P(Strategies, EqualTheOracle) {
  const Way& way = GetParam();
  Problem problem;
  problem.batch = 2;
  problem.heads = way.heads;
  problem.kv_heads = way.kv_heads;
  problem.head_dim = 24;
  problem.head_dim_v = 17;
  Tuning tuning;
  tuning.strategy = way.strategy;
  tuning.ranks = way.ranks;
  tuning.block_tokens = 5;
  const SeededData data(21);
  for (const char* mask : {"full", "causal", "window:13", "docs:0,9,9,10,40,67", "decode:7"}) {
    problem.mask = Mask::parse(mask, 67);
    const Output exact = oracle(problem, data);
    tuning.blocks_per_message = 0;
    for (const char* partition : {"contiguous", "zigzag", "striped:3"}) {
      tuning.partition = partition;
      SCOPED_TRACE(std::string(mask) + " " + partition);
      expect_equal(run_once(problem, tuning, data), exact);
      tuning.blocks_per_message = 1 - tuning.blocks_per_message;
    }
  }
}

std::vector<Way> rings() {
  std::vector<Way> ways;
  for (const char* strategy : {"pass-q", "bidirectional-ring", "tree-decode"}) {
    for (const int ranks : {1, 2, 3, 4, 5, 6, 7, 8}) ways.push_back({strategy, ranks, 6, 3});
  }
  for (const char* strategy : {"pass-kv", "multi-ring", "all-gather-kv"}) {
    for (const int ranks : {3, 5, 8}) ways.push_back({strategy, ranks, 6, 3});
  }
  for (const int ranks : {3, 6}) ways.push_back({"double-ring:3", ranks, 6, 3});
  for (const int ranks : {1, 2, 3, 5, 7, 8}) ways.push_back({"all-gather-kv:3", ranks, 6, 3});
  ways.push_back({"all-gather-kv:1", 3, 6, 3});
  return ways;
}

std::vector<Way> head_splits() {
  std::vector<Way> ways;
  for (const int ranks : {1, 2, 3, 5, 7, 8}) {
    ways.push_back({"ulysses", ranks, 2 * ranks, ranks});
    ways.push_back({"ulysses:uneven", ranks, 3 * (ranks + 1), ranks + 1});
    ways.push_back({"ulysses:repeat", ranks, 2 * ranks, 1});
    ways.push_back({"tensor-parallel", ranks, 9 * 2, 9});
  }
  for (const int ranks : {2, 4, 6, 8}) ways.push_back({"ulysses-ring:2", ranks, 6, 2});
  for (const int ranks : {3, 6}) {
    ways.push_back({"ulysses-ring:3", ranks, 6, 3});
    ways.push_back({"ulysses-ring:3,uneven", ranks, 10, 5});
    ways.push_back({"ulysses-ring:3,repeat", ranks, 6, 1});
  }
  ways.push_back({"ulysses-ring:1", 5, 6, 3});
  return ways;
}

std::vector<Way> devices() {
  return {{"flash", 1, 6, 3}, {"chunked", 1, 6, 3}, {"naive", 1, 6, 3}};
}

const auto kName = [](const testing::TestParamInfo<Way>& info) { return way_name(info.param); };
INSTANTIATE_TEST_SUITE_P(Rings, Strategies, testing::ValuesIn(rings()), kName);
INSTANTIATE_TEST_SUITE_P(HeadSplits, Strategies, testing::ValuesIn(head_splits()), kName);
INSTANTIATE_TEST_SUITE_P(Devices, Strategies, testing::ValuesIn(devices()), kName);

// States of the nodes of one tree travel, or keys of a group of heads after the other, so what is
// merged with what depends on the sequence
// alone.
TEST(DeterministicStrategies, GiveTheBytesOfOneRank) {
  Problem problem;
  problem.batch = 2;
  problem.heads = 4;
  problem.kv_heads = 2;
  problem.head_dim = 24;
  problem.head_dim_v = 17;
  const SeededData data(22);
  const auto bytes_of = [&](const Tuning& tuning) {
    const RingProgram program = plan(problem, tuning);
    CpuExecutor executor(program, data);
    executor.run();
    return testing_support::gather_bytes(executor, problem);
  };
  for (const char* mask : {"full", "causal", "window:13", "docs:0,9,9,10,40,67", "decode:7"}) {
    problem.mask = Mask::parse(mask, 67);
    Tuning tuning;
    tuning.is_deterministic = true;
    tuning.block_tokens = 6;
    tuning.ranks = 1;
    const auto alone = bytes_of(tuning);
    for (const char* strategy : {"pass-q", "bidirectional-ring", "all-gather-kv:2"}) {
      for (const int ranks : {1, 2, 3, 5, 8}) {
        for (const char* partition : {"contiguous", "zigzag", "striped:6"}) {
          tuning.strategy = strategy;
          tuning.ranks = ranks;
          tuning.partition = partition;
          tuning.blocks_per_message = 1 - tuning.blocks_per_message;
          EXPECT_EQ(bytes_of(tuning), alone) << strategy << ranks << partition << mask;
        }
      }
    }
  }
}

// The keys of other ranks are missing, and it shows, unless the mask keeps ranks apart.
TEST(LocalAttention, IsWrongUnlessTheMaskKeepsRanksApart) {
  Problem problem;
  problem.heads = 4;
  problem.kv_heads = 2;
  problem.head_dim = 24;
  problem.head_dim_v = 17;
  Tuning tuning;
  tuning.strategy = "local";
  tuning.ranks = 4;
  tuning.partition = "contiguous";
  tuning.block_tokens = 7;
  const SeededData data(3);
  problem.mask = Mask::causal(80);
  const double error = relative_rms(run_once(problem, tuning, data).out, oracle(problem, data).out);
  EXPECT_GT(error, 0.1);
  problem.mask = Mask::chunked(80, 20);
  EXPECT_LE(relative_rms(run_once(problem, tuning, data).out, oracle(problem, data).out), 4e-6);
}

}  // namespace
}  // namespace ring
