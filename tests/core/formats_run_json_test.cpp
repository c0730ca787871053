#include "core/formats/run_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <nlohmann/json.hpp>

#include "core/formats/timeline_json.h"
#include "tests/core/formats_random.h"
#include "tests/core/formats_testing.h"

namespace ring {
namespace {

using nlohmann::ordered_json;
using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;

RC_GTEST_PROP(RunJson, RoundTripIsEqualByteForByte, (uint64_t seed)) {
  const RunFile run = RandomFiles(seed).run();
  const std::string text = run_json(run);
  const RunFile read = parse_run(text, "r.json");
  RC_ASSERT(run_json(read) == text);
  RC_ASSERT(read.seed == run.seed);
  RC_ASSERT(read.is_complete() == run.is_complete());
  RC_ASSERT(read.measured.has_value() == run.measured.has_value());
  if (!run.measured) return;
  RC_ASSERT(read.measured->slices.size() == run.measured->slices.size());
  for (size_t i = 0; i < run.measured->slices.size(); ++i) {
    const Slice &a = run.measured->slices[i], &b = read.measured->slices[i];
    RC_ASSERT(a.op == b.op && a.kind == b.kind && a.bytes == b.bytes && a.flops == b.flops);
    RC_ASSERT(a.posted_ps == b.posted_ps && a.start_ps == b.start_ps && a.end_ps == b.end_ps);
  }
}

RC_GTEST_PROP(RunJson, EveryTruncationIsRefused, (uint64_t seed)) {
  const std::string text = run_json(RandomFiles(seed).run());
  const size_t length = seed % (text.size() - 1);
  try {
    parse_run(text.substr(0, length), "r.json");
    RC_FAIL("a part was read as a whole");
  } catch (const Error& error) {
    RC_ASSERT(std::string(error.what()).find("r.json:") == 0U);
  }
}

ordered_json document() {
  RunFile run;
  run.name = "one";
  run.identity = ProgramIdentity{};
  run.identity->problem.mask = Mask::causal(64);
  Timeline timeline;
  timeline.ranks = 2;
  timeline.lanes = 3;
  Slice slice;
  slice.op = {1, 0};
  slice.kind = OpKind::kAttend;
  slice.flops = INT64_MAX;
  slice.end_ps = 1000;
  timeline.slices = {slice};
  run.predicted = timeline;
  run.predicted_metrics = Metrics{};
  run.predicted_metrics->makespan_ps = 1000;
  return ordered_json::parse(run_json(run));
}

std::string refusal(const ordered_json& value) {
  return error_of([&] { parse_run(value.dump(), "r.json"); });
}

TEST(RunJson, FlopsComeBackToTheLastOne) {
  for (const __int128 flops : {__int128{INT64_MAX}, __int128{INT64_MAX} + 1, __int128{1} << 90}) {
    Metrics metrics;
    metrics.flops = flops;
    const ordered_json value = metrics_to_json(metrics);
    EXPECT_TRUE(metrics_from_json(value, {}).flops == flops) << value.at("flops");
  }
  ordered_json value = metrics_to_json({});
  value["flops"] = 1e60;
  EXPECT_THAT(error_of([&] {
                metrics_from_json(value, {"r.json", ""});
              }),
              HasSubstr("r.json: /flops: 1e+60 is too large"));
}

TEST(RunJson, NamesWhatIsWrong) {
  ordered_json value = document();
  value["predicted"]["slices"][0][0] = 2;
  EXPECT_THAT(refusal(value), HasSubstr("r.json: /predicted/slices/0/0: 2 is out of range"));

  value = document();
  value["program"]["tuning"]["ranks"] = 2000000000;
  EXPECT_THAT(refusal(value), HasSubstr("/program/tuning/ranks: 2000000000 is out of range"));
  value = document();
  value["predicted"]["slices"][0][2] = "atend";
  EXPECT_THAT(refusal(value),
              AllOf(HasSubstr("/predicted/slices/0/2"), HasSubstr("Did you mean attend?")));
  value = document();
  value["predicted"]["slices"][0][10] = 2000;
  EXPECT_THAT(refusal(value), HasSubstr("does not run from posted to start to end"));

  value = document();
  value["predicted"]["slices"][0].erase(11);
  EXPECT_THAT(refusal(value), HasSubstr("/predicted/slices/0: a slice has 12 values"));

  value = document();
  value["predicted"]["columns"][0] = "Rank";
  EXPECT_THAT(refusal(value), HasSubstr("/predicted/columns"));

  value = document();
  value["predicted_metrics"]["makespan_ps"] = 1001;
  EXPECT_THAT(refusal(value), HasSubstr("not those of the timeline"));

  value = document();
  value["complete"] = false;
  EXPECT_THAT(refusal(value), HasSubstr("/complete"));

  value = document();
  value["seed"] = -1;
  EXPECT_THAT(refusal(value), HasSubstr("/seed"));

  value = document();
  value["measured"] = value["predicted"];
  EXPECT_THAT(refusal(value), HasSubstr("/measured: the origin is not \"measured\""));

  value = document();
  value["program"]["problem"]["heads"] = 0;
  EXPECT_THAT(refusal(value), HasSubstr("r.json: /program/problem"));

  value = document();
  value["program"]["problem"]["mask"] = "casual";
  EXPECT_THAT(refusal(value), HasSubstr("r.json: /program/problem/mask"));

  value = document();
  value["program"]["problem"]["batch"] = "1";
  EXPECT_THAT(refusal(value), HasSubstr("/program/problem/batch: expected a whole number"));
}

TEST(RunJson, EveryKeyIsNeededOrOptional) {
  const ordered_json whole = document();
  for (const char* key : {"schema", "schema_version", "name", "complete", "program", "machine",
                          "seed", "context", "measured_steps_ps"}) {
    ordered_json part = whole;
    part.erase(key);
    EXPECT_THAT(refusal(part), AllOf(HasSubstr("r.json"), HasSubstr(key)));
  }
  ordered_json part = whole;
  part.erase("predicted_metrics");
  part.erase("predicted");
  EXPECT_NO_THROW(parse_run(part.dump(), "r.json"));
}

TEST(RunJson, PartialRunsAreMarked) {
  RunFile run;
  run.measured = Timeline{TimelineOrigin::kMeasured, "x", 1, 1, false, {}};
  EXPECT_FALSE(run.is_complete());
  EXPECT_THAT(run_json(run), HasSubstr("\"complete\": false"));
  EXPECT_FALSE(parse_run(run_json(run), "r").measured->is_complete);
}

TEST(RunJson, ClocksAndCountersComeBack) {
  RunFile run;
  run.measured = Timeline{TimelineOrigin::kMeasured, "x", 1, 1, true, {}};
  EXPECT_THAT(run_json(run), Not(AnyOf(HasSubstr("clock_uncertainty"), HasSubstr("counters"))));
  run.measured_clock_uncertainty_ps = 700'000;
  run.measured_counters = {{"power", "W", 3, {{-5, 250.5}, {9, 300}}}};
  const RunFile back = parse_run(run_json(run), "r");
  EXPECT_EQ(back.measured_clock_uncertainty_ps, 700'000);
  ASSERT_EQ(back.measured_counters.size(), 1U);
  EXPECT_EQ(back.measured_counters[0].device, 3);
  ASSERT_EQ(back.measured_counters[0].points.size(), 2U);
  EXPECT_EQ(back.measured_counters[0].points[0].time_ps, -5);
  EXPECT_EQ(back.measured_counters[0].points[0].value, 250.5);
}

}  // namespace
}  // namespace ring
