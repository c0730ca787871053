#include "core/choices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "core/error.h"
#include "core/mask_partition.h"
#include "core/strategy.h"

namespace ring {
namespace {

/// The kinds named by "allowed: full, causal, window:N, docs:0,N,..." of a refusal.
std::set<std::string> kinds_allowed(const std::string& hint) {
  std::set<std::string> kinds;
  const size_t begin = hint.find(": ") + 2;
  const size_t end = std::min(hint.find(';'), hint.size());
  std::string word;
  for (size_t at = begin; at <= end; ++at) {
    const bool is_end = at == end || hint[at] == ',';
    if (!is_end) {
      if (hint[at] != ' ') word += hint[at];
      continue;
    }
    const std::string kind(kind_of(word));
    // "mix:text=N,frames=KxN,new" is one word.
    const bool is_part = word == "new" || word.find('=') < word.find(':');
    if (!is_part && !kind.empty() && std::islower(static_cast<unsigned char>(kind[0])) != 0)
      kinds.insert(kind);
    word.clear();
  }
  return kinds;
}

template <typename Parse>
std::set<std::string> kinds_refused(Parse parse) {
  try {
    parse();
  } catch (const Error& error) {
    return kinds_allowed(error.hint());
  }
  return {};
}

std::set<std::string> kinds_of(const std::vector<ChoiceForm>& forms) {
  std::set<std::string> kinds;
  for (const ChoiceForm& form : forms) kinds.insert(form.kind);
  return kinds;
}

TEST(Choices, EveryMaskThatCanBeReadIsOffered) {
  const auto allowed = kinds_refused([] { Mask::parse("?", 100); });
  ASSERT_GE(allowed.size(), 8U);
  EXPECT_EQ(kinds_of(mask_forms(100)), allowed);
}

TEST(Choices, EveryPartitionThatCanBeReadIsOffered) {
  const auto allowed = kinds_refused([] { Partition::parse("?", 100, 4); });
  ASSERT_GE(allowed.size(), 4U);
  EXPECT_EQ(kinds_of(partition_forms(100, 4)), allowed);
}

TEST(Choices, ExamplesAreValidForAnySize) {
  for (const int64_t seq_len : {1, 2, 7, 4096, 1 << 20}) {
    for (const ChoiceForm& form : mask_forms(seq_len)) {
      EXPECT_EQ(Mask::parse(form.example, seq_len).seq_len(), seq_len) << form.example;
      EXPECT_EQ(kind_of(form.example), form.kind);
      EXPECT_EQ(form.parameter.empty(), parameter_of(form.example).empty()) << form.example;
    }
    for (const int ranks : {1, 3, 8}) {
      for (const ChoiceForm& form : partition_forms(seq_len, ranks)) {
        const Partition partition = make_partition(form.example, Mask::causal(seq_len), ranks);
        EXPECT_EQ(partition.ranks(), ranks) << form.example;
      }
    }
  }
}

TEST(Choices, StrategiesCanBePlannedAsOffered) {
  for (const int ranks : {2, 3, 4, 7, 8}) {
    const std::vector<ChoiceForm> forms = strategy_forms(ranks);
    ASSERT_EQ(forms.size(), all_strategies().size() - 3) << "all but those for one device";
    for (const ChoiceForm& form : forms) {
      Problem problem;
      problem.mask = Mask::causal(64);
      Tuning tuning;
      tuning.ranks = ranks;
      tuning.block_tokens = 8;
      tuning.strategy = form.example;
      EXPECT_NO_THROW(plan_source(problem, tuning)) << form.example << " on " << ranks;
    }
  }
}

TEST(Choices, AnotherLengthKeepsTheMask) {
  Problem problem;
  problem.mask = Mask::parse("docs:0,25,100", 100);
  EXPECT_EQ(with_seq_len(problem, 400).mask.text(), "docs:0,100,400");
  EXPECT_EQ(with_seq_len(problem, 10).mask.text(), "docs:0,2,10");
  problem.mask = Mask::parse("prefix:60", 100);
  EXPECT_EQ(with_seq_len(problem, 50).mask.text(), "prefix:50");
  problem.mask = Mask::parse("window:60", 100);
  EXPECT_EQ(with_seq_len(problem, 50).mask.text(), "window:60");
}

}  // namespace
}  // namespace ring
