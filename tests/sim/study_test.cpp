#include "sim/study.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "core/error.h"
#include "core/formats/example_scenarios.h"
#include "core/machine_presets.h"
#include "core/strategy.h"
#include "sim/candidates.h"
#include "tests/sim/study_fixture.h"

namespace ring {
namespace {

using testing::HasSubstr;

TEST(Study, IsNeverFasterThanItsBounds) {
  for (const ExampleScenario& example : example_scenarios()) {
    const Scenario scenario = scenario_of(example);
    if (scenario.machine.empty()) continue;
    const Study study = study_of(scenario);
    EXPECT_GE(study.result.makespan_ps, study.plan->bounds.longest_ps()) << example.name;
    EXPECT_GT(study.plan->bounds.longest_ps(), 0) << example.name;
    EXPECT_FALSE(study.result.timeline.slices.empty()) << example.name;
  }
}

TEST(Study, BandwidthOfTheWhatIfCounts) {
  Scenario scenario = small_scenario();
  scenario.problem.heads = scenario.problem.kv_heads = 32;
  scenario.tuning.partition = "contiguous";
  const Picoseconds now_ps = study_of(scenario).result.makespan_ps;
  scenario.what_if.bandwidth = 0.01;
  EXPECT_GT(study_of(scenario).result.makespan_ps, 2 * now_ps);
}

TEST(Study, ExplainsItself) {
  Scenario scenario = small_scenario();
  scenario.what_if.jitter = 0.1;
  const Study study = study_of(scenario);
  const StudyReasons quick = explain_study(study);
  EXPECT_FALSE(quick.why.what_if);
  EXPECT_EQ(quick.interval.coverage, kPredictedCoverage);
  EXPECT_LE(quick.interval.low_ps, study.result.makespan_ps);
  EXPECT_GE(quick.interval.high_ps, study.result.makespan_ps);
  StudyReasons full = quick;
  add_what_ifs(study, full);
  ASSERT_TRUE(full.why.what_if);
  EXPECT_FALSE(full.why.what_if->effects.empty());
}

TEST(Study, NamesTheCycleOfADeadlock) {
  Scenario scenario = small_scenario();
  scenario.tuning.pipeline_depth = 1;
  try {
    study_of(scenario);
    FAIL() << "depth 1 on a ring of four cannot finish";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("r0"));
  }
}

TEST(Study, RefusesWhatIsTooLarge) {
  Scenario scenario = small_scenario();
  scenario.problem.mask = Mask::causal(1 << 20);
  scenario.tuning.ranks = 64;
  scenario.tuning.block_tokens = 1;
  try {
    plan_study(scenario, machine_preset("dgx-a100"));
    FAIL() << "millions of ops";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("more than"));
  }
}

TEST(Study, StopsWhenAsked) {
  std::stop_source stop;
  stop.request_stop();
  const auto plan = plan_study(small_scenario(), machine_preset("dgx-a100"));
  try {
    run_study(plan, stop.get_token());
    FAIL() << "stopped before it began";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInterrupted);
  }
}

TEST(Study, EstimateCountsOps) {
  const Scenario scenario = small_scenario();
  const auto source = plan_source(scenario.problem, scenario.tuning);
  const int64_t ops = plan(scenario.problem, scenario.tuning).op_count();
  const int64_t estimate = estimated_ops(*source, kMostStudyOps);
  EXPECT_GT(estimate, ops / 2);
  EXPECT_LT(estimate, ops * 2);
}

TEST(Candidates, CoverTheGridAndKeepFailures) {
  const Scenario scenario = small_scenario();
  const auto grid = block_depth_candidates(scenario.problem, scenario.tuning);
  // Blocks 128, 256, 512, 1024 of a shard of 1024, depths 1 to 8.
  ASSERT_EQ(grid.size(), 32U);
  CandidateOptions options;
  options.draws = 1;
  size_t told = 0;
  options.on_result = [&told](size_t, const CandidateResult&) { ++told; };
  const auto results = evaluate(grid, machine_preset("dgx-a100"), options);
  EXPECT_EQ(told, 32U);
  for (const CandidateResult& result : results) {
    const bool is_deadlock = result.candidate.tuning.pipeline_depth == 1;
    EXPECT_EQ(result.point.is_done, !is_deadlock) << result.candidate.series;
    EXPECT_EQ(result.point.error.empty(), !is_deadlock) << result.candidate.series;
  }
}

TEST(Candidates, IntervalsHoldTheMedian) {
  Scenario scenario = small_scenario();
  Machine machine = machine_preset("dgx-a100");
  machine.noise.per_op = 0.2;
  CandidateOptions options;
  options.draws = 9;
  for (const CandidateResult& result :
       evaluate(seq_len_candidates(scenario.problem, scenario.tuning), machine, options)) {
    ASSERT_TRUE(result.point.is_done) << result.point.error;
    EXPECT_EQ(result.spread.draws, 9);
    EXPECT_LT(result.spread.low_ps, result.spread.high_ps);
  }
  const auto sizes = ring_size_candidates(scenario.problem, scenario.tuning, 16);
  EXPECT_EQ(sizes.size(), 4U);
  // All but those of a single device, which cannot cut the problem over several ranks.
  std::vector<std::string> names;
  for (const Candidate& each : strategy_candidates(scenario.problem, scenario.tuning)) {
    names.push_back(each.series);
  }
  for (const Strategy& strategy : all_strategies()) {
    const bool is_single_device =
        strategy.name == "naive" || strategy.name == "chunked" || strategy.name == "flash";
    EXPECT_EQ(std::count(names.begin(), names.end(), strategy.name), is_single_device ? 0 : 1)
        << strategy.name;
  }
}

TEST(Candidates, BestIsByWhatIsAskedFor) {
  std::vector<CandidateResult> results(3);
  const auto fill = [&results](size_t i, Picoseconds makespan_ps, Bytes bytes, double overlap) {
    results[i].point.is_done = true;
    results[i].point.makespan_ps = makespan_ps;
    results[i].point.rank_bytes = bytes;
    results[i].point.metrics.overlap = overlap;
  };
  fill(1, 20, 5, 0.5);
  fill(2, 10, 9, 0.7);
  EXPECT_EQ(best_of(results, CandidateValue::kTime), 2U);
  EXPECT_EQ(best_of(results, CandidateValue::kMemory), 1U);
  EXPECT_EQ(best_of(results, CandidateValue::kOverlap), 2U);
  results[2].is_exact = false;
  EXPECT_EQ(best_of(results, CandidateValue::kTime), 1U);
  results[2].is_exact = true;
  results[2].point.fits = false;
  EXPECT_EQ(best_of(results, CandidateValue::kTime), 1U);
  EXPECT_FALSE(value_of(results[0], CandidateValue::kTime));
  EXPECT_EQ(value_text(CandidateValue::kTime, 0.0123), "12.3 ms");
}

TEST(Candidates, WhatLeavesPairsOutIsNotExact) {
  const Scenario scenario = small_scenario();
  CandidateOptions options;
  options.draws = 1;
  for (const CandidateResult& result :
       evaluate(strategy_candidates(scenario.problem, scenario.tuning), machine_preset("dgx-a100"),
                options)) {
    EXPECT_EQ(result.is_exact, result.candidate.series != "local") << result.candidate.series;
  }
}

TEST(Candidates, CsvHasOneLineEach) {
  const Scenario scenario = small_scenario();
  CandidateOptions options;
  options.draws = 1;
  const auto results = evaluate(strategy_candidates(scenario.problem, scenario.tuning),
                                machine_preset("dgx-a100"), options);
  const std::string csv = candidates_csv(results);
  EXPECT_EQ(static_cast<size_t>(std::count(csv.begin(), csv.end(), '\n')), results.size() + 1);
  EXPECT_THAT(csv, HasSubstr("pass-kv,"));
}

TEST(Candidates, TooManyOpsAreLeftOut) {
  const Scenario scenario = small_scenario();
  CandidateOptions options;
  options.most_ops = 10;
  const auto results =
      evaluate({{"a", 0, scenario.problem, scenario.tuning}}, machine_preset("dgx-a100"), options);
  EXPECT_FALSE(results[0].point.is_done);
  EXPECT_THAT(results[0].point.error, HasSubstr("ops"));
}

}  // namespace
}  // namespace ring
