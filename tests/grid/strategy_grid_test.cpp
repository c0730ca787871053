// The whole product of strategies, partitions, masks and passes, with ring sizes 1 to 8 in turn:
// run for real against the fp64 oracle, its bytes counted, and the same program simulated.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/error.h"
#include "sim/reference_scenarios.h"
#include "sim/simulator.h"
#include "tests/grid/wire_oracle.h"
#include "tests/kernels/backward_fixture.h"

namespace ring {
namespace {

using testing_support::AllGradients;
using testing_support::Output;
using testing_support::relative_rms;

// No two sizes are equal, and none divides the length.
constexpr int64_t kTokens = 41, kBatch = 2, kDim = 9, kDimV = 7;
constexpr int kMostRanks = 8;

constexpr std::array kMasks = {"full",
                               "causal",
                               "window:11",
                               "chunked:16",
                               "docs:0,9,9,10,30,41",
                               "docs-full:0,1,1,23,41",
                               "prefix:13",
                               "groups:0,1,17,25,41",
                               "mix:text=7,frames=3x8+1+1,new,text=4",
                               "decode:5"};
constexpr std::array kPartitions = {"contiguous", "shorter-last", "zigzag",
                                    "doc-zigzag", "striped",      "striped:3",
                                    "balanced",   "balanced:",    "uneven:"};
constexpr std::array kPasses = {Pass::kForward, Pass::kForwardBackward, Pass::kBackward};
/// N stands for a divisor of the ranks.
constexpr std::array kStrategies = {"pass-kv",
                                    "pass-q",
                                    "bidirectional-ring",
                                    "double-ring:N",
                                    "multi-ring",
                                    "all-gather-kv",
                                    "all-gather-kv:3",
                                    "ulysses",
                                    "ulysses:repeat",
                                    "ulysses:uneven",
                                    "ulysses-ring:N",
                                    "ulysses-ring:N,repeat",
                                    "ulysses-ring:N,uneven",
                                    "tensor-parallel",
                                    "tree-decode",
                                    "local",
                                    "flash",
                                    "chunked",
                                    "naive"};

bool is_one_of(std::string_view text, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), text) != names.end();
}

/// Lengths that add up, one of them 0; or speeds of the ranks.
std::string partition_text(std::string text, int ranks) {
  if (text.back() != ':') return text;
  int64_t left = kTokens;
  for (int rank = 0; rank < ranks; ++rank) {
    const bool is_last = rank + 1 == ranks;
    if (text.starts_with("balanced")) {
      text += fmt::format("{}", 1 + rank % 3);
    } else {
      const int64_t length = is_last ? left : (rank * 5) % 8;
      text += fmt::format("{}", length);
      left -= length;
    }
    if (!is_last) text += ",";
  }
  return text;
}

struct Combination {
  Problem problem;
  Tuning tuning;
  std::string text() const {
    return fmt::format("{} x{} {} {} {}, heads {}/{}, {} blocks a message, {} lanes, x{}",
                       tuning.strategy, tuning.ranks, tuning.partition, problem.mask.text(),
                       name(problem.pass), problem.heads, problem.kv_heads,
                       tuning.blocks_per_message, tuning.lanes, tuning.accumulation_steps);
  }
};

void set_heads(Combination& at, int64_t kv_heads, int64_t group) {
  at.problem.kv_heads = kv_heads;
  at.problem.heads = kv_heads * group;
}

/// The strategy with a number for N, and heads that it can split.
void set_strategy(Combination& at, std::string text, size_t turn) {
  const int ranks = at.tuning.ranks;
  std::vector<int> divisors;
  for (int divisor = 1; divisor <= ranks; ++divisor) {
    if (ranks % divisor == 0) divisors.push_back(divisor);
  }
  const int divisor = divisors[turn % divisors.size()];
  const bool is_mesh = text.starts_with("ulysses-ring");
  const int64_t members = is_mesh ? divisor : ranks;
  set_heads(at, 3, 2);
  if (text.ends_with("repeat")) {
    set_heads(at, 1, 2 * members);
  } else if (text.ends_with("uneven") || text == "tensor-parallel") {
    set_heads(at, members + 1, 2);
  } else if (text.starts_with("ulysses")) {
    set_heads(at, members, 2);
  }
  if (const size_t n = text.find('N'); n != std::string::npos)
    text.replace(n, 1, std::to_string(divisor));
  at.tuning.strategy = text;
}

/// The oracle, or, where keys do not travel, the oracle without those of other ranks.
class Exact {
 public:
  explicit Exact(const RingProgram& program) : problem_(program.problem), owners_(kTokens, 0) {
    for (int rank = 0; rank < program.ranks() && program.skips_pairs; ++rank) {
      for (const AffineRange& range : program.partition.shard(rank)) {
        for (int64_t i = 0; i < range.count; ++i)
          owners_[static_cast<size_t>(range.position(i))] = rank;
      }
    }
  }

  Output output(const DataSource& data) const {
    Output all;
    for_elements(data, [&](testing_support::StoredProblem& element, int64_t) {
      const reference::Output exact = reference::attend(element.plain());
      append(exact.out, problem_.heads, kDimV, all.out);
      append(exact.lse, problem_.heads, 1, all.lse);
    });
    return all;
  }

  AllGradients gradients(const DataSource& data) const {
    AllGradients all;
    const int64_t width = problem_.heads * kDimV;
    for_elements(data, [&](testing_support::StoredProblem& element, int64_t batch) {
      const auto d_out =
          testing_support::stored(problem_, data, Tensor::kOutputGradient, batch, width);
      const reference::Gradients exact =
          reference::attend_backward(element.plain(), {d_out.data(), problem_.dtype, width, kDimV});
      append(exact.dq, problem_.heads, kDim, all.dq);
      append(exact.dk, problem_.kv_heads, kDim, all.dk);
      append(exact.dv, problem_.kv_heads, kDimV, all.dv);
    });
    return all;
  }

 private:
  template <class Visit>
  void for_elements(const DataSource& data, const Visit& visit) const {
    for (int64_t batch = 0; batch < kBatch; ++batch) {
      testing_support::StoredProblem element(problem_, data, batch);
      element.plain().scale = static_cast<double>(problem_.softmax_scale());
      const auto visible = element.plain().visible;
      element.plain().visible = [this, visible](int64_t row, int64_t key) {
        const auto owner = [this](int64_t token) { return owners_[static_cast<size_t>(token)]; };
        return owner(row) == owner(key) && visible(row, key);
      };
      visit(element, batch);
    }
  }
  static void append(const std::vector<double>& from, int64_t heads, int64_t dim,
                     std::vector<double>& to) {
    testing_support::append_by_token(from, kTokens, heads, dim, to);
  }

  const Problem problem_;
  std::vector<int> owners_;
};

// Tolerances as in executor_accuracy_test.cpp and backward_test.cpp: fp32 sums of up to 41 terms.
void expect_output(const Output& actual, const Output& exact) {
  testing_support::expect_output(actual, exact, 4e-6, 2e-5);
}

// A row that sees one key has no gradient of Q and K: there the two numbers of about 1 whose
// difference it is leave their rounding.
void expect_gradients(const std::vector<double>& actual, const std::vector<double>& exact) {
  constexpr double kNothing = 1e-12;
  const bool is_nothing = testing_support::rms(exact) < kNothing;
  EXPECT_LE(is_nothing ? testing_support::rms(actual) : relative_rms(actual, exact), 4e-6);
}

void expect_bytes(const RingProgram& program) {
  Bytes sent = 0;
  for (const RankProgram& rank : program.rank_programs) {
    for (const Op& op : rank.ops) sent += op.kind == OpKind::kSend ? op.bytes : 0;
  }
  EXPECT_EQ(sent, program.tuning.accumulation_steps * testing_support::wire_bytes(program));
}

void expect_simulated(const RingProgram& program) {
  Machine machine = ring_of_gpus(std::max(program.ranks(), 2), 10e9, 1'000'000);
  for (auto* costs : {&machine.attend, &machine.backward}) {
    (*costs)[DType::kF32].launch_s = 1e-6;
    (*costs)[DType::kF32].per_pair_dim_s = 1e-12;
  }
  machine.copy = {1e-6, 100e9};
  machine.merge_bytes_per_s = machine.finalize_bytes_per_s = 100e9;
  const SimulationResult result = simulate(program, machine);
  EXPECT_EQ(result.ops, program.op_count());
  EXPECT_TRUE(result.metrics.is_complete);
}

class StrategyGrid : public testing::TestWithParam<const char*> {
 protected:
  /// The oracles of programs that compute all pairs, by mask and heads.
  struct Oracles {
    Output output;
    AllGradients gradients;
  };

  const Oracles& exact(const RingProgram& program) {
    const Problem& problem = program.problem;
    const std::string key = fmt::format(
        "{} {} {} {}", problem.mask.text(), problem.heads, problem.kv_heads,
        program.skips_pairs ? fmt::format("{} {}", program.partition.text(), program.ranks())
                            : std::string());
    const auto found = oracles_.find(key);
    if (found != oracles_.end()) return found->second;
    const Exact exact(program);
    return oracles_[key] = {exact.output(data_), exact.gradients(data_)};
  }

  void expect_right(const Combination& at) {
    const RingProgram program = plan(at.problem, at.tuning);
    expect_bytes(program);
    expect_simulated(program);
    CpuExecutor executor(program, data_);
    executor.run();
    const Oracles& want = exact(program);
    expect_output(testing_support::gather(executor, at.problem), want.output);
    if (!has_backward(at.problem.pass)) return;
    AllGradients have = testing_support::gather_gradients(executor, at.problem);
    for (auto* all : {&have.dq, &have.dk, &have.dv}) {
      for (double& value : *all) value /= at.tuning.accumulation_steps;
    }
    expect_gradients(have.dq, want.gradients.dq);
    expect_gradients(have.dk, want.gradients.dk);
    expect_gradients(have.dv, want.gradients.dv);
  }

  const SeededData data_{31};
  std::map<std::string, Oracles> oracles_;
};

Combination combination(const char* strategy, size_t mask, size_t partition, size_t pass) {
  // The partitions take turns in the ring sizes: every mask meets every size in every pass.
  const size_t turn = 3 * mask + partition + 5 * pass;
  Combination at;
  at.problem.batch = kBatch;
  at.problem.head_dim = kDim;
  at.problem.head_dim_v = kDimV;
  at.problem.mask = Mask::parse(kMasks[mask], kTokens);
  at.problem.pass = kPasses[pass];
  at.tuning.ranks = 1 + static_cast<int>(turn % kMostRanks);
  if (is_one_of(strategy, {"flash", "chunked", "naive"})) at.tuning.ranks = 1;
  at.tuning.partition = partition_text(kPartitions[partition], at.tuning.ranks);
  at.tuning.block_tokens = 4;
  at.tuning.blocks_per_message = static_cast<int64_t>(turn / 2 % 3);
  at.tuning.lanes = 1 + static_cast<int>(turn % 5 / 4);
  at.tuning.pipeline_depth = 2 + static_cast<int>(turn % 7 / 5);
  if (has_backward(at.problem.pass)) at.tuning.accumulation_steps = turn % 6 == 0 ? 2 : 1;
  set_strategy(at, strategy, mask + partition);
  return at;
}

TEST_P(StrategyGrid, EqualsTheOracleInResultsBytesAndOps) {
  int done = 0;
  for (size_t mask = 0; mask < kMasks.size(); ++mask) {
    for (size_t partition = 0; partition < kPartitions.size(); ++partition) {
      for (size_t pass = 0; pass < kPasses.size(); ++pass) {
        const Combination at = combination(GetParam(), mask, partition, pass);
        const bool is_refused =
            at.tuning.strategy == "tree-decode" && has_backward(at.problem.pass);
        SCOPED_TRACE(at.text());
        try {
          expect_right(at);
          EXPECT_FALSE(is_refused);
          ++done;
        } catch (const Error& error) {
          EXPECT_TRUE(is_refused) << error.what();
          EXPECT_THAT(error.hint(), testing::HasSubstr("nearest legal: "));
        }
        if (HasFailure()) return;
      }
    }
  }
  const size_t passes = GetParam() == std::string("tree-decode") ? 1 : kPasses.size();
  EXPECT_EQ(static_cast<size_t>(done), kMasks.size() * kPartitions.size() * passes);
}

const auto kName = [](const testing::TestParamInfo<const char*>& info) {
  std::string text = info.param;
  for (char& c : text) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return text;
};
INSTANTIATE_TEST_SUITE_P(All, StrategyGrid, testing::ValuesIn(kStrategies), kName);

// Every strategy that there is stands in the list.
TEST(StrategyGridList, HasEveryStrategy) {
  for (const Strategy& strategy : all_strategies()) {
    const bool is_there = std::any_of(
        kStrategies.begin(), kStrategies.end(),
        [&](std::string text) { return text.substr(0, text.find(':')) == strategy.name; });
    EXPECT_TRUE(is_there) << strategy.name;
  }
}

}  // namespace
}  // namespace ring
