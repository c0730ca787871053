// The product of strategies, partitions and masks: every combination is sound, or it is refused
// with a reason and a nearest one that is legal.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <string>

#include "core/error.h"
#include "core/legality.h"
#include "core/program_check.h"
#include "core/strategy.h"

namespace ring {
namespace {

using testing::HasSubstr;

constexpr int64_t kTokens = 48;

const char* const kPartitions[] = {"contiguous", "shorter-last", "zigzag",   "doc-zigzag",
                                   "striped",    "striped:3",    "balanced", "uneven"};
const char* const kMasks[] = {"full",       "causal",           "window:7",
                              "chunked:16", "docs:0,1,1,20,48", "docs-full:0,9,48",
                              "prefix:10",  "groups:0,8,24,48", "decode:3"};

Problem problem_of(const std::string& mask) {
  Problem problem;
  problem.heads = 8;
  problem.kv_heads = 4;
  problem.head_dim = 6;
  problem.head_dim_v = 5;
  problem.mask = Mask::parse(mask, kTokens);
  return problem;
}

std::string partition_of(const std::string& text, int ranks) {
  if (text != "uneven") return text;
  std::string lengths = fmt::format("uneven:{}", kTokens - (ranks - 1) * 2);
  for (int rank = 1; rank < ranks; ++rank) lengths += ",2";
  return lengths;
}

/// What one combination came to.
enum class Outcome { kSound, kRefused };

Outcome check_combination(const Problem& problem, const Tuning& tuning) {
  try {
    const RingProgram program = plan(problem, tuning);
    for (const Fault& fault : check_program(program)) ADD_FAILURE() << fault.message;
    return Outcome::kSound;
  } catch (const Error& error) {
    EXPECT_GT(std::string(error.what()).size(), 20U) << "a reason";
    EXPECT_THAT(error.hint(), HasSubstr("nearest legal: "));
    const auto nearest = nearest_legal(problem, tuning);
    if (!nearest) {
      ADD_FAILURE() << "nothing legal is near";
      return Outcome::kRefused;
    }
    EXPECT_THAT(error.hint(), HasSubstr(options_text(tuning, *nearest)));
    EXPECT_FALSE(options_text(tuning, *nearest).empty());
    EXPECT_TRUE(check_program(plan(problem, *nearest)).empty());
  }
  return Outcome::kRefused;
}

class Product : public testing::TestWithParam<std::string> {};

TEST_P(Product, IsSoundOrRefusedWithTheNearestLegal) {
  Tuning tuning;
  tuning.block_tokens = 4;
  int sound = 0, backward = 0;
  for (const int ranks : {1, 3, 4, 6}) {
    for (const char* partition : kPartitions) {
      for (const char* mask : kMasks) {
        for (const bool is_deterministic : {false, true}) {
          for (const Pass pass : {Pass::kForward, Pass::kForwardBackward, Pass::kBackward}) {
            if (pass == Pass::kBackward && ranks != 4) continue;
            tuning.strategy = GetParam();
            tuning.ranks = ranks;
            tuning.partition = partition_of(partition, ranks);
            tuning.is_deterministic = is_deterministic;
            SCOPED_TRACE(fmt::format("{} ranks, {}, {}, {}, {}", ranks, partition, mask,
                                     is_deterministic ? "deterministic" : "", name(pass)));
            Problem problem = problem_of(mask);
            problem.pass = pass;
            const Outcome outcome = check_combination(problem, tuning);
            if (HasFailure()) return;
            if (outcome == Outcome::kSound) ++(has_backward(pass) ? backward : sound);
          }
        }
      }
    }
  }
  const bool needs_parameter = GetParam() == "double-ring" || GetParam() == "ulysses-ring";
  EXPECT_EQ(sound > 0, !needs_parameter);
  EXPECT_EQ(backward > 0, !needs_parameter && GetParam() != "tree-decode");
}

std::vector<std::string> strategies() {
  std::vector<std::string> texts;
  for (const Strategy& strategy : all_strategies()) texts.emplace_back(strategy.name);
  for (const char* text : {"double-ring:2", "multi-ring:2", "all-gather-kv:2", "ulysses:repeat",
                           "ulysses:uneven", "ulysses-ring:2", "ulysses-ring:3,uneven"})
    texts.emplace_back(text);
  return texts;
}

std::string name_of(const testing::TestParamInfo<std::string>& info) {
  std::string text = info.param;
  for (char& c : text) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return text;
}

INSTANTIATE_TEST_SUITE_P(AllStrategies, Product, testing::ValuesIn(strategies()), name_of);

TEST(Legality, SaysWhyAndWhatInstead) {
  Tuning tuning;
  tuning.strategy = "ulysses";
  tuning.ranks = 3;
  try {
    plan(problem_of("causal"), tuning);
    ADD_FAILURE() << "4 KV heads over 3 ranks are not even";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("8 query heads over 4 KV heads"));
    EXPECT_THAT(error.hint(), HasSubstr("legal degrees: 1, 2, 4"));
    EXPECT_THAT(error.hint(), HasSubstr("nearest legal: --strategy ulysses:uneven"));
  }
}

TEST(Legality, DecodingHasNoBackwardPass) {
  Tuning tuning;
  tuning.strategy = "tree-decode";
  Problem problem = problem_of("causal");
  problem.pass = Pass::kForwardBackward;
  try {
    plan(problem, tuning);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("it is for inference"));
    EXPECT_THAT(error.hint(), HasSubstr("nearest legal: --strategy pass-q"));
  }
}

// Where shares of gradients are summed rank by rank, the last bits depend on how many there are.
TEST(Legality, DeterministicGradientsNeedAllTokensOnOneRank) {
  Tuning tuning;
  tuning.is_deterministic = true;
  tuning.ranks = 2;
  tuning.block_tokens = 8;
  Problem problem = problem_of("causal");
  problem.pass = Pass::kForwardBackward;
  for (const char* strategy : {"pass-kv", "all-gather-kv", "ulysses-ring:1"}) {
    tuning.strategy = strategy;
    EXPECT_THROW(plan(problem, tuning), Error) << strategy;
  }
  tuning.strategy = "ulysses:repeat";
  tuning.ranks = 8;
  EXPECT_THROW(plan(problem, tuning), Error) << "two ranks share a KV head";
  for (const char* strategy : {"ulysses", "tensor-parallel"}) {
    tuning.strategy = strategy;
    tuning.ranks = 4;
    EXPECT_TRUE(check_program(plan(problem, tuning)).empty()) << strategy;
  }
}

TEST(Legality, OptionsNameOnlyWhatDiffers) {
  Tuning from, to;
  to.strategy = "double-ring:2";
  to.ranks = 4;
  EXPECT_EQ(options_text(from, to), "--strategy double-ring:2 --ranks 4");
  EXPECT_EQ(options_text(from, from), "");
}

}  // namespace
}  // namespace ring
