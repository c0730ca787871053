// Faults of splitting heads: F28.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/error.h"
#include "core/strategies/head_split.h"
#include "core/strategy.h"

namespace ring {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<int64_t> counts(const std::vector<HeadRange>& split) {
  std::vector<int64_t> result;
  for (const HeadRange& heads : split) result.push_back(heads.count());
  return result;
}

TEST(Faults, F28EveryRankGetsHeadsAndGroupsStayTogether) {
  EXPECT_THAT(counts(split_heads(12, 12, 4, HeadRule::kEven)), ElementsAre(3, 3, 3, 3));
  const auto split = split_heads(6, 3, 2, HeadRule::kUneven);
  EXPECT_THAT(counts(split), ElementsAre(4, 2));
  Problem problem;
  problem.heads = 6;
  problem.kv_heads = 3;
  EXPECT_EQ(kv_heads_of(problem, split[0]), (HeadRange{0, 2}));
  EXPECT_EQ(kv_heads_of(problem, split[1]), (HeadRange{2, 3}));
}

// 40 query heads over 8 KV heads, as in Qwen2.5-14B.
TEST(Faults, F28LegalDegreesAreNamed) {
  EXPECT_THAT(legal_head_degrees(40, 8, false), ElementsAre(1, 2, 4, 8));
  EXPECT_THAT(legal_head_degrees(40, 8, true), ElementsAre(1, 2, 4, 8, 40));
  EXPECT_EQ(counts(split_heads(40, 8, 40, HeadRule::kRepeat)), std::vector<int64_t>(40, 1));
  for (const int ranks : {5, 10, 16, 20}) {
    for (const HeadRule rule : {HeadRule::kEven, HeadRule::kRepeat}) {
      try {
        split_heads(40, 8, ranks, rule);
        ADD_FAILURE() << ranks << " was not refused";
      } catch (const Error& error) {
        EXPECT_THAT(error.what(), HasSubstr("stay together"));
        EXPECT_THAT(error.hint(), HasSubstr("1, 2, 4, 8"));
        EXPECT_THAT(error.hint(), HasSubstr("40"));
      }
    }
  }
}

Flops flops_of(int64_t heads, int64_t kv_heads) {
  Problem problem;
  problem.heads = heads;
  problem.kv_heads = kv_heads;
  problem.mask = Mask::full(64);
  Tuning tuning;
  tuning.strategy = "ulysses";
  tuning.ranks = 2;
  Flops flops = 0;
  for (const RankProgram& rank : plan(problem, tuning).rank_programs) {
    for (const Op& op : rank.ops) flops += op.flops;
  }
  return flops;
}

TEST(Faults, F28TwoModelsInOneProcessDoNotMix) {
  const Flops first = flops_of(40, 8);
  EXPECT_EQ(flops_of(12, 12) * 40, first * 12);
  EXPECT_EQ(flops_of(40, 8), first);
}

}  // namespace
}  // namespace ring
