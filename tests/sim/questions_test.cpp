// The four questions: answered from runs of which the answer is known.
#include "sim/questions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "core/formats/example_scenarios.h"
#include "tests/sim/study_fixture.h"

namespace ring {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

SweepPoint point(Tokens block, int depth, Picoseconds makespan_ps, double exposed) {
  SweepPoint point;
  point.is_done = true;
  point.tuning.ranks = 4;
  point.tuning.block_tokens = block;
  point.tuning.pipeline_depth = depth;
  point.makespan_ps = point.metrics.makespan_ps = makespan_ps;
  point.metrics.exposed_ps = static_cast<Picoseconds>(exposed * static_cast<double>(makespan_ps));
  return point;
}

QuestionFacts facts_of(const std::vector<double>& exposed) {
  QuestionFacts facts;
  Tokens block = 128;
  for (const double share : exposed) {
    facts.blocks.push_back(point(block, 2, 1'000'000'000, share));
    block *= 2;
  }
  facts.now = facts.blocks.front();
  return facts;
}

TEST(Questions, HidingNamesTheBlockAtWhichItTurns) {
  EXPECT_THAT(answer_hiding(facts_of({0.2, 0.1, 0.005, 0})).text,
              StartsWith("Below 512 tokens. With 256, 10.0 % of the time is exposed"));
  EXPECT_THAT(answer_hiding(facts_of({0, 0.01, 0.3})).text,
              StartsWith("Above 256 tokens. With 512, 30.0 % of the time is exposed"));
  EXPECT_THAT(answer_hiding(facts_of({0, 0.002})).text,
              StartsWith("At none: it hides with all blocks"));
  EXPECT_THAT(answer_hiding(facts_of({0.2, 0.3})).text,
              testing::AllOf(StartsWith("It hides at no block"),
                             HasSubstr("least exposed is 128 (20.0 %)")));
  EXPECT_THAT(answer_hiding(facts_of({0, 0.3, 0})).text,
              HasSubstr("with blocks of 128, 512 tokens, not with 256"));
}

TEST(Questions, HidingIsMeasuredAsInTheSweep) {
  const Study study = study_of(small_scenario());
  const QuestionFacts facts = question_facts(study);
  EXPECT_EQ(facts.now.makespan_ps, study.result.makespan_ps);
  ASSERT_GE(facts.blocks.size(), 4U);
  for (const SweepPoint& block : facts.blocks) {
    EXPECT_EQ(block.tuning.pipeline_depth, study.plan->program.tuning.pipeline_depth);
    Scenario scenario = small_scenario();
    scenario.tuning = block.tuning;
    const Metrics& metrics = study_of(scenario).result.metrics;
    EXPECT_DOUBLE_EQ(exposed_share(block.metrics), exposed_share(metrics));
  }
}

TEST(Questions, LateRankIsFoundAndSlownessToldFromWork) {
  Scenario slow = small_scenario();
  slow.problem.mask = Mask::full(4096);
  slow.slow_ranks = {{2, 2.0}};
  const Answer answer = answer_late_rank(study_of(slow));
  EXPECT_EQ(answer.rank, 2);
  EXPECT_THAT(answer.text,
              HasSubstr("no more to compute than the others: it computes 2 times as slowly"));

  // Contiguous shards of a causal mask: the last rank sees the most pairs.
  Scenario uneven = small_scenario();
  uneven.tuning.partition = "contiguous";
  const Answer last = answer_late_rank(study_of(uneven));
  EXPECT_EQ(last.rank, 3);
  EXPECT_THAT(last.text, HasSubstr("more to compute: the contiguous partition"));

  Scenario late = small_scenario();
  late.late_starts = {{1, 5'000'000}};
  EXPECT_THAT(answer_late_rank(study_of(late)).text, HasSubstr("Rank 1 starts 5.00 us late"));
}

TEST(Questions, DepthIsWorthWhatTheLadderSays) {
  QuestionFacts facts;
  facts.now = point(128, 2, 1'000'000'000, 0.2);
  facts.depths = {point(128, 1, 2'000'000'000, 0.5), facts.now, point(128, 3, 900'000'000, 0.1),
                  point(128, 4, 800'000'000, 0.0), point(128, 8, 799'000'000, 0.0)};
  facts.depths.front().is_done = false;
  const std::string text = answer_depth(facts).text;
  EXPECT_THAT(text, HasSubstr("Depth 3: -10.0 %"));
  EXPECT_THAT(text, HasSubstr("Depth 4: -20.0 %"));
  EXPECT_THAT(text, HasSubstr("deeper buys no more"));
  EXPECT_THAT(text, HasSubstr("Depth 1 cannot finish."));
  facts.depths.front().error = "the program cannot finish: after 32 ops nothing can go on";
  EXPECT_THAT(answer_depth(facts).text, HasSubstr("each rank waits for the next to free its"));
  facts.depths.front() = point(128, 1, 1'000'000'000, 0.2);
  EXPECT_THAT(answer_depth(facts).text, HasSubstr("Depth 1 is as fast."));
  facts.depths = {facts.now, point(128, 3, 1'000'000'000, 0.2)};
  EXPECT_THAT(answer_depth(facts).text, StartsWith("Nothing"));
}

TEST(Questions, TheLinkAnswerTellsWhereTheTimeGoes) {
  QuestionFacts facts;
  facts.now = point(128, 2, 1'000'000'000, 0.11);
  facts.twice = point(128, 2, 995'000'000, 0.06);
  EXPECT_THAT(answer_link(facts).text,
              testing::AllOf(StartsWith("-0.5 %"), HasSubstr("from 11.0 % to 6.0 % of the time"),
                             HasSubstr("waiting for other ranks takes its place")));
  facts.twice = point(128, 2, 940'000'000, 0.06);
  EXPECT_THAT(answer_link(facts).text, testing::Not(HasSubstr("takes its place")));
  facts.now = facts.twice = point(128, 2, 1'000'000'000, 0);
  EXPECT_THAT(answer_link(facts).text,
              testing::AllOf(StartsWith("Nothing"), HasSubstr("no communication is exposed")));
}

TEST(Questions, TwiceTheLinkIsTheWhatIfOfTwo) {
  Scenario scenario = small_scenario();
  scenario.tuning.block_tokens = 64;
  const QuestionFacts facts = question_facts(study_of(scenario));
  scenario.what_if.bandwidth = 2;
  EXPECT_EQ(facts.twice.makespan_ps, study_of(scenario).result.makespan_ps);
}

TEST(Questions, EveryExampleHasFourAnswers) {
  for (const ExampleScenario& example : example_scenarios()) {
    const Scenario scenario = scenario_of(example);
    if (scenario.machine.empty()) continue;
    const std::vector<Answer> answers = answer_questions(study_of(scenario));
    ASSERT_EQ(answers.size(), std::size(kQuestions)) << example.name;
    for (size_t i = 0; i < answers.size(); ++i) {
      EXPECT_EQ(answers[i].question, kQuestions[i]);
      EXPECT_GT(answers[i].text.size(), 10U) << example.name;
    }
  }
}

TEST(Questions, CanBeStopped) {
  std::stop_source stop;
  stop.request_stop();
  EXPECT_THROW(question_facts(study_of(small_scenario()), stop.get_token()), Error);
}

}  // namespace
}  // namespace ring
