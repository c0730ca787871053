// Every strategy's backward pass, run for real, against the fp64 oracle.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "tests/kernels/backward_fixture.h"

namespace ring {
namespace {

using testing_support::AllGradients;
using testing_support::oracle_gradients;
using testing_support::relative_rms;
using testing_support::run_gradients;

/// A strategy, and heads that it can split.
struct Way {
  std::string strategy;
  int ranks;
  int64_t heads, kv_heads;
};

std::string way_name(const testing::TestParamInfo<Way>& info) {
  std::string text = fmt::format("{}_x{}", info.param.strategy, info.param.ranks);
  for (char& c : text) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return text;
}

// All dimensions differ from one another, and no length divides.
Problem problem_of(const Way& way, const char* mask) {
  Problem problem;
  problem.batch = 2;
  problem.heads = way.heads;
  problem.kv_heads = way.kv_heads;
  problem.head_dim = 24;
  problem.head_dim_v = 17;
  problem.mask = Mask::parse(mask, 67);
  return problem;
}

// As in backward_test.cpp: sums of up to 67 terms with the error of a weight each.
void expect_equal(const AllGradients& actual, const AllGradients& exact) {
  testing_support::expect_gradients(actual, exact, 4e-6, 4e-6);
}

class BackwardStrategies : public testing::TestWithParam<Way> {};

TEST_P(BackwardStrategies, EqualTheOracle) {
  const Way& way = GetParam();
  Tuning tuning;
  tuning.strategy = way.strategy;
  tuning.ranks = way.ranks;
  tuning.block_tokens = 5;
  const SeededData data(21);
  constexpr std::array kMasks = {"full",
                                 "causal",
                                 "window:13",
                                 "chunked:16",
                                 "prefix:20",
                                 "decode:7",
                                 "docs:0,9,9,10,40,67",
                                 "causal",
                                 "causal",
                                 "groups:0,1,17,33,67",
                                 "mix:text=9,frames=3x14+1+2,new,text=7"};
  constexpr std::array kPartitions = {"contiguous", "zigzag", "striped:3", "balanced"};
  // Partitions take turns, another one for every number of ranks.
  for (size_t i = 0; i < kMasks.size(); ++i) {
    Problem problem = problem_of(way, kMasks[i]);
    problem.pass = i % 4 == 3 ? Pass::kBackward : Pass::kForwardBackward;
    tuning.partition = kPartitions[(i + static_cast<size_t>(way.ranks)) % kPartitions.size()];
    tuning.blocks_per_message = i % 2;
    tuning.accumulation_steps = i % 3 == 2 ? 2 : 1;
    SCOPED_TRACE(fmt::format("{} {} {} x{}", kMasks[i], tuning.partition, name(problem.pass),
                             tuning.accumulation_steps));
    AllGradients actual = run_gradients(problem, tuning, data);
    for (auto* all : {&actual.dq, &actual.dk, &actual.dv}) {
      for (double& value : *all) value /= tuning.accumulation_steps;
    }
    expect_equal(actual, oracle_gradients(problem, data));
    if (HasFailure()) return;
  }
}

std::vector<Way> rings() {
  std::vector<Way> ways;
  for (const char* strategy : {"pass-q", "bidirectional-ring"}) {
    for (const int ranks : {1, 2, 3, 4, 5, 7, 8}) ways.push_back({strategy, ranks, 6, 3});
  }
  for (const char* strategy : {"pass-kv", "all-gather-kv", "multi-ring"}) {
    for (const int ranks : {3, 8}) ways.push_back({strategy, ranks, 6, 3});
  }
  ways.push_back({"double-ring:3", 6, 6, 2});
  for (const int ranks : {1, 2, 3, 5, 7, 8}) ways.push_back({"all-gather-kv:3", ranks, 6, 3});
  ways.push_back({"all-gather-kv:1", 3, 6, 3});
  return ways;
}

std::vector<Way> head_splits() {
  std::vector<Way> ways;
  for (const int ranks : {1, 2, 3, 5, 7, 8}) {
    ways.push_back({"ulysses", ranks, 2 * ranks, ranks});
    ways.push_back({"ulysses:repeat", ranks, 2 * ranks, 1});
  }
  for (const int ranks : {3, 5})
    ways.push_back({"ulysses:uneven", ranks, 2 * ranks + 2, ranks + 1});
  for (const int ranks : {2, 3, 8}) ways.push_back({"tensor-parallel", ranks, 9 * 2, 9});
  for (const int ranks : {2, 4, 6, 8}) ways.push_back({"ulysses-ring:2", ranks, 6, 2});
  ways.push_back({"ulysses-ring:3,uneven", 6, 10, 5});
  ways.push_back({"ulysses-ring:3,repeat", 6, 6, 1});
  return ways;
}

std::vector<Way> devices() {
  return {{"flash", 1, 6, 3}, {"chunked", 1, 6, 3}, {"naive", 1, 6, 3}};
}

INSTANTIATE_TEST_SUITE_P(Rings, BackwardStrategies, testing::ValuesIn(rings()), way_name);
INSTANTIATE_TEST_SUITE_P(HeadSplits, BackwardStrategies, testing::ValuesIn(head_splits()),
                         way_name);
INSTANTIATE_TEST_SUITE_P(Devices, BackwardStrategies, testing::ValuesIn(devices()), way_name);

// The side that travels may be chosen: between groups, and where queries travel forward.
TEST(BackwardStrategies, EitherSideTravels) {
  const SeededData data(22);
  for (const auto& [strategy, ranks] :
       {std::pair{"ulysses-ring:2", 6}, {"pass-q", 5}, {"bidirectional-ring", 4}}) {
    Problem problem = problem_of({strategy, ranks, 8, 2}, "causal");
    problem.pass = Pass::kForwardBackward;
    const AllGradients exact = oracle_gradients(problem, data);
    for (const BackwardMoves moves : {BackwardMoves::kKeys, BackwardMoves::kQueries}) {
      Tuning tuning;
      tuning.strategy = strategy;
      tuning.ranks = ranks;
      tuning.block_tokens = 4;
      tuning.blocks_per_message = 1;
      tuning.backward = moves;
      SCOPED_TRACE(fmt::format("{} {}", strategy, name(moves)));
      expect_equal(run_gradients(problem, tuning, data), exact);
    }
  }
}

// A rank that has all tokens of its heads sums their gradients in the order of the tokens.
TEST(BackwardStrategies, DeterministicGradientsDoNotDependOnTheRanks) {
  const SeededData data(23);
  Problem problem = problem_of({"", 1, 16, 8}, "causal");
  problem.pass = Pass::kForwardBackward;
  Tuning tuning;
  tuning.is_deterministic = true;
  tuning.block_tokens = 8;
  tuning.strategy = "pass-kv";
  tuning.ranks = 1;
  const AllGradients alone = run_gradients(problem, tuning, data);
  for (const char* strategy : {"ulysses", "ulysses:uneven", "tensor-parallel"}) {
    for (const int ranks : {2, 3, 4, 8}) {
      if (std::string(strategy) == "ulysses" && ranks == 3) continue;
      tuning.strategy = strategy;
      tuning.ranks = ranks;
      const AllGradients split = run_gradients(problem, tuning, data);
      EXPECT_EQ(split.dq, alone.dq) << strategy << ranks;
      EXPECT_EQ(split.dk, alone.dk) << strategy << ranks;
      EXPECT_EQ(split.dv, alone.dv) << strategy << ranks;
    }
  }
}

// Values are multiples of 2^-8, so that fp32 holds them and a step of 2^-10 beside them exactly.
class SteppedData final : public DataSource {
 public:
  static constexpr float kStep = 0x1p-10F;
  void fill(Tensor tensor, int64_t batch, int64_t position,
            std::span<float> values) const override {
    base_.fill(tensor, batch, position, values);
    for (float& value : values) value = std::round(value * 256) / 256;
    if (tensor == tensor_ && position == position_) values[index_] += step_;
  }
  void step(Tensor tensor, int64_t position, size_t index, float step) {
    tensor_ = tensor;
    position_ = position;
    index_ = index;
    step_ = step;
  }

 private:
  SeededData base_{25};
  Tensor tensor_ = Tensor::kQuery;
  int64_t position_ = -1;
  size_t index_ = 0;
  float step_ = 0;
};

/// The sum of out * dO of the fp64 oracle.
double loss(const Problem& problem, const DataSource& data) {
  testing_support::StoredProblem element(problem, data, 0);
  element.plain().scale = static_cast<double>(problem.softmax_scale());
  const std::vector<double> out = reference::attend(element.plain()).out;
  const auto rows = static_cast<size_t>(problem.seq_len());
  const auto dim = static_cast<size_t>(problem.head_dim_v);
  std::vector<float> d_out(static_cast<size_t>(problem.heads) * dim);
  double sum = 0;
  for (size_t row = 0; row < rows; ++row) {
    data.fill(Tensor::kOutputGradient, 0, static_cast<int64_t>(row), d_out);
    for (size_t i = 0; i < d_out.size(); ++i)
      sum += out[(i / dim * rows + row) * dim + i % dim] * static_cast<double>(d_out[i]);
  }
  return sum;
}

/// Central differences: their error is the square of the step times a third derivative over 6,
/// below 1e-6 of gradients of about 1.
std::vector<double> differences(const Problem& problem, Tensor tensor, int64_t width) {
  std::vector<double> all;
  SteppedData data;
  for (int64_t position = 0; position < problem.seq_len(); ++position) {
    for (size_t i = 0; i < static_cast<size_t>(width); ++i) {
      data.step(tensor, position, i, SteppedData::kStep);
      const double above = loss(problem, data);
      data.step(tensor, position, i, -SteppedData::kStep);
      all.push_back((above - loss(problem, data)) / (2 * static_cast<double>(SteppedData::kStep)));
    }
  }
  return all;
}

TEST(BackwardStrategies, EqualFiniteDifferences) {
  Problem problem;
  problem.heads = 4;
  problem.kv_heads = 2;
  problem.head_dim = 5;
  problem.head_dim_v = 3;
  problem.pass = Pass::kForwardBackward;
  for (const char* mask : {"full", "causal", "window:4", "docs:0,1,1,6,9"}) {
    problem.mask = Mask::parse(mask, 9);
    const AllGradients exact{
        differences(problem, Tensor::kQuery, problem.heads * problem.head_dim),
        differences(problem, Tensor::kKey, problem.kv_heads * problem.head_dim),
        differences(problem, Tensor::kValue, problem.kv_heads * problem.head_dim_v)};
    for (const auto& [strategy, ranks] : {std::pair{"pass-kv", 3},
                                          {"pass-q", 3},
                                          {"bidirectional-ring", 5},
                                          {"double-ring:2", 4},
                                          {"multi-ring", 5},
                                          {"all-gather-kv", 3},
                                          {"all-gather-kv:2", 3},
                                          {"ulysses", 2},
                                          {"ulysses:repeat", 4},
                                          {"ulysses-ring:2", 4},
                                          {"tensor-parallel", 2},
                                          {"flash", 1},
                                          {"chunked", 1},
                                          {"naive", 1}}) {
      Tuning tuning;
      tuning.strategy = strategy;
      tuning.ranks = ranks;
      tuning.block_tokens = 2;
      SCOPED_TRACE(fmt::format("{} {}", mask, strategy));
      expect_equal(run_gradients(problem, tuning, SteppedData()), exact);
    }
  }
}

// Keys of other ranks are missing in the gradients too, and it shows.
TEST(BackwardStrategies, LocalIsWrongUnlessTheMaskKeepsRanksApart) {
  const SeededData data(24);
  Tuning tuning;
  tuning.strategy = "local";
  tuning.ranks = 4;
  tuning.partition = "contiguous";
  Problem problem = problem_of({"", 1, 6, 3}, "causal");
  problem.pass = Pass::kForwardBackward;
  problem.mask = Mask::causal(80);
  EXPECT_GT(
      relative_rms(run_gradients(problem, tuning, data).dk, oracle_gradients(problem, data).dk),
      0.1);
  problem.mask = Mask::chunked(80, 20);
  expect_equal(run_gradients(problem, tuning, data), oracle_gradients(problem, data));
}

}  // namespace
}  // namespace ring
