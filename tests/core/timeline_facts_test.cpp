// What the timeline view shows besides bars: statistics, curves, flows, pairs, search, ticks, text.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "core/error.h"
#include "core/link_rates.h"
#include "core/memory_use.h"
#include "core/op_flows.h"
#include "core/program_text.h"
#include "core/slice_search.h"
#include "core/slice_statistics.h"
#include "core/slice_text.h"
#include "core/step_curve.h"
#include "core/strategy.h"
#include "core/time_ticks.h"
#include "core/timeline_pairs.h"
#include "tests/core/random_run.h"
#include "tests/core/small_problem.h"

namespace ring {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Slice slice(OpKind kind, int32_t rank, int64_t index, int32_t lane, Picoseconds posted,
            Picoseconds start, Picoseconds end) {
  Slice s;
  s.op = {rank, index};
  s.kind = kind;
  s.lane = lane;
  s.posted_ps = posted;
  s.start_ps = start;
  s.end_ps = end;
  return s;
}

RC_GTEST_PROP(SliceStatistics, PercentilesAreNearestRanks, ()) {
  auto values = *rc::gen::nonEmpty(
      rc::gen::container<std::vector<Picoseconds>>(rc::gen::inRange<Picoseconds>(0, 1000)));
  auto sorted = values;
  std::sort(sorted.begin(), sorted.end());
  const DurationStatistics got = duration_statistics(values);
  const auto n = static_cast<int64_t>(sorted.size());
  const auto rank = [&](int64_t percent) {  // The ceiling of n * percent / 100, in whole numbers.
    return sorted[static_cast<size_t>(std::max<int64_t>(1, (n * percent + 99) / 100) - 1)];
  };
  RC_ASSERT(got.count == n);
  RC_ASSERT(got.sum_ps == std::accumulate(sorted.begin(), sorted.end(), Picoseconds{0}));
  RC_ASSERT(got.p50_ps == rank(50));
  RC_ASSERT(got.p95_ps == rank(95));
  RC_ASSERT(got.p99_ps == rank(99));
  RC_ASSERT(got.min_ps == sorted.front());
  RC_ASSERT(got.max_ps == sorted.back());
}

TEST(SliceStatistics, KindsAndWaitsAreKeptApart) {
  Timeline timeline;
  timeline.slices = {
      slice(OpKind::kAttend, 0, 0, 0, 0, 0, 10), slice(OpKind::kReceive, 0, 1, 2, 5, 8, 20),
      slice(OpKind::kReceive, 0, 2, 2, 20, 20, 24), slice(OpKind::kAttend, 0, 3, 0, 24, 24, 54)};
  timeline.slices[1].bytes = 100;
  timeline.slices[3].flops = 7;
  const SliceStatistics all = slice_statistics(timeline, std::vector<uint32_t>{0, 1, 2, 3});
  EXPECT_EQ(all.work.count, 4);
  EXPECT_EQ(all.work.sum_ps, 10 + 12 + 4 + 30);
  EXPECT_EQ(all.wait.count, 1);
  EXPECT_EQ(all.wait.max_ps, 3);
  ASSERT_EQ(all.kinds.size(), 2U);
  EXPECT_EQ(all.kinds[0].kind, OpKind::kAttend);
  EXPECT_EQ(all.kinds[0].work.mean_ps, 20);
  EXPECT_EQ(all.kinds[0].flops, 7);
  EXPECT_EQ(all.kinds[1].work.p50_ps, 4);
  EXPECT_EQ(all.kinds[1].bytes, 100);
  EXPECT_EQ(slice_statistics(timeline, {}).work.count, 0);
}

TEST(SliceStatistics, ASumTooLargeStopsAtTheHighestNumber) {
  std::vector<Picoseconds> huge(3, INT64_MAX / 2);
  const DurationStatistics got = duration_statistics(huge);
  EXPECT_EQ(got.sum_ps, INT64_MAX);
  EXPECT_NEAR(got.mean_ps, static_cast<double>(INT64_MAX) / 2, 1e4);
}

TEST(StepCurve, ValuesAndMeans) {
  const StepCurve curve({{10, 2.0}, {20, 4.0}, {20, 6.0}, {30, 0.0}});
  EXPECT_EQ(curve.value_at(9), 0);
  EXPECT_EQ(curve.value_at(10), 2);
  EXPECT_EQ(curve.value_at(20), 6);
  EXPECT_EQ(curve.value_at(100), 0);
  EXPECT_EQ(curve.peak(), 6);
  EXPECT_DOUBLE_EQ(curve.mean(0, 40), (20 + 60) / 40.0);
  EXPECT_DOUBLE_EQ(curve.mean(15, 25), (10 + 30) / 10.0);
  std::vector<float> means(4);
  curve.means(0, 40, means);
  EXPECT_THAT(means, ElementsAre(0.0F, 2.0F, 6.0F, 0.0F));
}

// With many steps the means come from a grid, which may shift them by a quarter of a part at either
// end; the mean over everything is not changed by more than the two outermost parts.
TEST(StepCurve, ManyStepsHaveTheSameMeans) {
  std::mt19937_64 random(3);
  std::vector<StepCurve::Step> steps;
  Picoseconds at = 0;
  double area = 0;
  for (int i = 0; i < 50'000; ++i) {
    const auto length = static_cast<Picoseconds>(1 + random() % 100);
    const auto value = static_cast<double>(random() % 10);
    steps.push_back({at, value});
    area += value * static_cast<double>(length);
    at += length;
  }
  steps.push_back({at, 0});
  const StepCurve curve(steps);
  std::vector<float> means(1000);
  curve.means(0, at, means);
  const double sum = std::accumulate(means.begin(), means.end(), 0.0);
  EXPECT_NEAR(sum / 1000, area / static_cast<double>(at), 0.001 * area / static_cast<double>(at));
  // A closer look reads the steps themselves.
  std::vector<float> close(10);
  curve.means(at / 2, at / 2 + 1000, close);
  for (size_t i = 0; i < close.size(); ++i) {
    const auto from = at / 2 + static_cast<Picoseconds>(i) * 100;
    double exact = 0;
    for (Picoseconds t = from; t < from + 100; ++t) exact += curve.value_at(t);
    EXPECT_NEAR(close[i], exact / 100, 1e-4);
  }
}

TEST(LinkRates, ReceivesCountAndOverlapsAdd) {
  Timeline timeline;
  timeline.ranks = 2;
  timeline.lanes = 3;
  const Picoseconds us = 1'000'000;
  for (int i = 0; i < 2; ++i) {
    Slice s = slice(OpKind::kReceive, 1, i, 2, 0, i * us, (i + 2) * us);
    s.peer = 0;
    s.bytes = 2000;  // 1 GB/s over two microseconds
    timeline.slices.push_back(s);
    s.kind = OpKind::kSend;  // The other side of the same transfer is not counted again.
    s.op = {0, i};
    s.peer = 1;
    timeline.slices.push_back(s);
  }
  const auto rates = link_rates(timeline, 2);
  ASSERT_EQ(rates.size(), 1U);
  EXPECT_EQ(rates[0].from, 0);
  EXPECT_EQ(rates[0].to, 1);
  EXPECT_EQ(rates[0].bytes, 4000);
  EXPECT_NEAR(rates[0].bytes_per_s.value_at(us / 2), 1e9, 1);
  EXPECT_NEAR(rates[0].bytes_per_s.value_at(us + 1), 2e9, 1);
  EXPECT_EQ(rates[0].bytes_per_s.value_at(3 * us), 0);
}

TEST(LinkRates, ManyDestinationsHaveOneCurve) {
  Timeline timeline;
  for (int32_t to = 1; to <= 5; ++to) {
    Slice s = slice(OpKind::kSend, 0, to, 1, 0, 0, 1000);
    s.peer = to;
    s.bytes = 10;
    timeline.slices.push_back(s);
  }
  const auto rates = link_rates(timeline, 2);
  ASSERT_EQ(rates.size(), 1U);
  EXPECT_EQ(rates[0].to, -1);
  EXPECT_EQ(rates[0].links, 5);
  EXPECT_EQ(rates[0].bytes, 50);
  EXPECT_NEAR(rates[0].bytes_per_s.peak(), 50 / 1e-9, 1);
}

TEST(MemoryUse, ABufferIsHeldFromItsTransferToItsLastReader) {
  const RingProgram program = parse_program(R"(ranks 2
lanes 3
r0 L1 send to=1 msg=0 bytes=64
r1 L2 receive from=0 msg=0 bytes=64 buffer=0
r1 L0 attend shard=0 kv=0..4 q=0..4 buffer=0 after=r1:0
r1 L0 compute time=5ms
)");
  Timeline timeline;
  timeline.ranks = 2;
  timeline.lanes = 3;
  timeline.slices = {
      slice(OpKind::kSend, 0, 0, 1, 0, 10, 20), slice(OpKind::kReceive, 1, 0, 2, 0, 10, 20),
      slice(OpKind::kAttend, 1, 1, 0, 20, 20, 50), slice(OpKind::kCompute, 1, 2, 0, 50, 50, 90)};
  const auto uses = memory_use(program, timeline);
  ASSERT_EQ(uses.size(), 2U);
  EXPECT_EQ(uses[0].peak_bytes(), 0);
  EXPECT_EQ(uses[1].bytes.value_at(5), 0);
  EXPECT_EQ(uses[1].bytes.value_at(10), 64);
  EXPECT_EQ(uses[1].bytes.value_at(49), 64);
  EXPECT_EQ(uses[1].bytes.value_at(50), 0);
}

TEST(MemoryUse, NeverMoreThanItsBuffersHaveRoomFor) {
  Tuning tuning;
  tuning.ranks = 4;
  tuning.block_tokens = 4;
  tuning.blocks_per_message = 2;
  tuning.pipeline_depth = 3;
  const RingProgram program = plan(testing_support::small_problem(64, "causal"), tuning);
  // One op after another, in an order that every rank can follow: times matter little here.
  Timeline timeline;
  timeline.ranks = 4;
  timeline.lanes = program.lanes;
  for (int32_t rank = 0; rank < 4; ++rank) {
    Picoseconds at = 0;
    for (int64_t i = 0; i < std::ssize(program.rank_programs[static_cast<size_t>(rank)].ops); ++i) {
      Slice s = slice_of(program, {rank, i});
      s.posted_ps = s.start_ps = at;
      s.end_ps = at += 10;
      timeline.slices.push_back(s);
    }
  }
  const auto uses = memory_use(program, timeline);
  for (const RankMemoryUse& use : uses) {
    EXPECT_GT(use.peak_bytes(), use.resident_bytes);
    EXPECT_LE(use.peak_bytes(), use.resident_bytes + use.buffer_bytes);
    EXPECT_EQ(use.bytes.steps().back().value, static_cast<double>(use.resident_bytes));
  }
}

TEST(OpFlows, MessagesDependenciesAndCredits) {
  const RingProgram program = parse_program(R"(ranks 2
lanes 3
r0 L1 send to=1 msg=0 bytes=64
r0 L1 send to=1 msg=1 bytes=64
r1 L2 receive from=0 msg=0 bytes=64 buffer=0
r1 L0 attend shard=0 kv=0..4 q=0..4 buffer=0 after=r1:0
r1 L2 receive from=0 msg=1 bytes=64 buffer=0 after=r1:1
)");
  Timeline timeline;
  timeline.ranks = 2;
  timeline.lanes = 3;
  timeline.slices = {
      slice(OpKind::kSend, 0, 0, 1, 0, 0, 10), slice(OpKind::kSend, 0, 1, 1, 10, 30, 40),
      slice(OpKind::kAttend, 1, 1, 0, 10, 10, 30), slice(OpKind::kReceive, 1, 0, 2, 0, 0, 10),
      slice(OpKind::kReceive, 1, 2, 2, 10, 30, 40)};
  const OpFlows flows{RunGraph(program, timeline)};
  const auto only = [](std::span<const Flow> of) {
    EXPECT_EQ(of.size(), 1U);
    return of.empty() ? std::pair<uint32_t, FlowKind>{99, FlowKind::kMessage}
                      : std::pair(of[0].slice, of[0].kind);
  };
  EXPECT_EQ(only(flows.out_of(0)), std::pair(3U, FlowKind::kMessage));
  EXPECT_EQ(only(flows.into(2)), std::pair(3U, FlowKind::kDependency));
  EXPECT_EQ(only(flows.out_of(2)), std::pair(4U, FlowKind::kBufferCredit));
  EXPECT_EQ(flows.into(4).size(), 2U);
  EXPECT_EQ(flows.into(0).size(), 0U);
  EXPECT_EQ(OpFlows().into(5).size(), 0U);
}

TEST(OpFlows, WithoutAProgramMessagesPairInOrder) {
  Timeline timeline;
  timeline.ranks = 2;
  const auto side = [&](OpKind kind, int32_t rank, int64_t index, Picoseconds at) {
    Slice s = slice(kind, rank, index, 1, at, at, at + 5);
    s.peer = 1 - rank;
    return s;
  };
  timeline.slices = {side(OpKind::kSend, 0, 0, 0), side(OpKind::kSend, 0, 1, 10),
                     side(OpKind::kSend, 1, 0, 3), side(OpKind::kReceive, 1, 1, 12),
                     side(OpKind::kReceive, 1, 2, 1)};
  const OpFlows flows(timeline);
  ASSERT_EQ(flows.count(), 2);
  EXPECT_EQ(flows.out_of(0)[0].slice, 4U);
  EXPECT_EQ(flows.out_of(1)[0].slice, 3U);
  EXPECT_EQ(flows.out_of(2).size(), 0U);
}

// Every flow into a slice is one out of another, in random programs too.
TEST(OpFlows, BothDirectionsAgree) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    const test::RandomRun run = test::random_run(seed);
    const Timeline timeline = test::timed(run);
    const OpFlows flows{RunGraph(run.program, timeline)};
    int64_t into = 0, out = 0;
    for (uint32_t i = 0; i < timeline.slices.size(); ++i) {
      into += std::ssize(flows.into(i));
      for (const Flow& flow : flows.out_of(i)) {
        ++out;
        const auto back = flows.into(flow.slice);
        EXPECT_TRUE(std::any_of(back.begin(), back.end(), [&](const Flow& f) {
          return f.slice == i && f.kind == flow.kind;
        }));
        EXPECT_LE(timeline.slices[i].start_ps, timeline.slices[flow.slice].end_ps);
      }
    }
    EXPECT_EQ(into, out);
  }
}

TEST(TimelinePairs, SameOpsPairAndDriftIsPredictedMinusMeasured) {
  Timeline measured, predicted;
  measured.ranks = predicted.ranks = 1;
  measured.slices = {slice(OpKind::kAttend, 0, 0, 0, 0, 0, 10),
                     slice(OpKind::kAttend, 0, 1, 0, 10, 10, 30),
                     slice(OpKind::kMerge, 0, 5, 0, 30, 30, 40)};
  predicted.slices = {slice(OpKind::kAttend, 0, 1, 0, 12, 12, 25),
                      slice(OpKind::kAttend, 0, 0, 0, 0, 0, 12)};
  const TimelinePairs pairs(measured, predicted);
  EXPECT_EQ(pairs.count(), 2);
  EXPECT_EQ(pairs.only_measured(), 1);
  EXPECT_EQ(pairs.only_predicted(), 0);
  EXPECT_EQ(pairs.partner({TimelineOrigin::kMeasured, 0})->slice, 1U);
  EXPECT_EQ(pairs.partner({TimelineOrigin::kPredicted, 0})->slice, 1U);
  EXPECT_EQ(pairs.partner({TimelineOrigin::kMeasured, 2}), std::nullopt);
  const auto drift = drift_curves(measured, predicted, pairs);
  ASSERT_EQ(drift.size(), 1U);
  EXPECT_EQ(drift[0].value_at(10), 2);
  EXPECT_EQ(drift[0].value_at(30), -5);
}

TEST(TimelinePairs, DifferentProgramsHaveNone) {
  Timeline measured, predicted;
  measured.ranks = predicted.ranks = 1;
  measured.slices = {slice(OpKind::kAttend, 0, 0, 0, 0, 0, 10)};
  predicted.slices = {slice(OpKind::kSend, 0, 0, 1, 0, 0, 10)};
  const TimelinePairs kinds(measured, predicted);
  EXPECT_THAT(kinds.mismatch(), HasSubstr("op r0:0 is attend"));
  EXPECT_EQ(kinds.count(), 0);
  EXPECT_EQ(kinds.partner({TimelineOrigin::kMeasured, 0}), std::nullopt);
  predicted.ranks = 2;
  EXPECT_THAT(TimelinePairs(measured, predicted).mismatch(), HasSubstr("1 ranks"));
}

TEST(SliceSearch, WordsMustAllHold) {
  Timeline timeline;
  for (int32_t rank = 0; rank < 3; ++rank) {
    Slice s = slice(OpKind::kAttend, rank, 4, 0, 0, 0, 2'000'000);
    s.kv_shard = rank;
    s.step = 1;
    timeline.slices.push_back(s);
    s = slice(OpKind::kReceive, rank, 5, 2, 0, 10, 20);
    s.peer = 2;
    timeline.slices.push_back(s);
  }
  const auto found = [&](std::string_view text) {
    return matching_slices(timeline, parse_slice_query(text));
  };
  EXPECT_THAT(found("attend"), ElementsAre(0, 2, 4));
  EXPECT_THAT(found("attend kv 1"), ElementsAre(2));
  EXPECT_THAT(found("attend receive rank=0"), ElementsAre(0, 1));
  EXPECT_THAT(found("wait"), ElementsAre(1, 3, 5));
  EXPECT_THAT(found("from 2 r1"), ElementsAre(3));
  EXPECT_THAT(found("r2:4"), ElementsAre(4));
  EXPECT_THAT(found(">1us"), ElementsAre(0, 2, 4));
  EXPECT_THAT(found("> 2 us"), ElementsAre());
  EXPECT_THAT(found(">=2us Step 1 lane 0"), ElementsAre(0, 2, 4));
  EXPECT_THAT(found("<=10ps"), ElementsAre(1, 3, 5));
  EXPECT_EQ(found("").size(), 6U);
}

TEST(SliceSearch, WordsThatMeanNothingAreRefused) {
  const auto message = [](std::string_view text) -> std::string {
    try {
      parse_slice_query(text);
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_THAT(message("atend"), HasSubstr("did you mean 'attend'"));
  EXPECT_THAT(message("kv"), HasSubstr("needs a number"));
  EXPECT_THAT(message("rank x"), HasSubstr("needs a number"));
  EXPECT_THAT(message("r"), HasSubstr("means nothing"));
  EXPECT_THAT(message("r1:"), HasSubstr("means nothing"));
  EXPECT_NE(message(">fast"), "accepted");
  EXPECT_NE(message(">"), "accepted");
}

RC_GTEST_PROP(TimeTicks, TicksAreRoundInOrderAndEnough, ()) {
  const auto from = *rc::gen::inRange<Picoseconds>(-1'000'000, 4'000'000'000'000);
  const auto span = *rc::gen::inRange<Picoseconds>(2, 3'000'000'000'000);
  const int wanted = *rc::gen::inRange(2, 20);
  const TimeTicks ticks = time_ticks(from, from + span, wanted);
  RC_ASSERT(std::ssize(ticks.ticks) <= wanted + 1);
  if (span >= 3 * wanted) RC_ASSERT(std::ssize(ticks.ticks) >= wanted * 2 / 5 - 1);
  for (size_t i = 0; i < ticks.ticks.size(); ++i) {
    RC_ASSERT(ticks.ticks[i].at_ps >= from);
    RC_ASSERT(ticks.ticks[i].at_ps <= from + span);
    RC_ASSERT(ticks.ticks[i].at_ps % ticks.step_ps == 0);
    RC_ASSERT(ticks.ticks[i].label.size() <= 10U);
    if (i > 0) {
      RC_ASSERT(ticks.ticks[i].at_ps - ticks.ticks[i - 1].at_ps == ticks.step_ps);
      RC_ASSERT(ticks.ticks[i].label != ticks.ticks[i - 1].label);
    }
  }
}

TEST(TimeTicks, DeepZoomCountsFromABase) {
  const TimeTicks near = time_ticks(0, 5'000'000'000, 5);
  EXPECT_EQ(near.unit, "ms");
  EXPECT_EQ(near.base_ps, 0);
  EXPECT_EQ(near.ticks.at(1).label, "1");
  const TimeTicks deep = time_ticks(1'234'567'890'000, 1'234'567'891'000, 5);
  EXPECT_GT(deep.base_ps, 1'234'567'000'000);
  EXPECT_LE(deep.base_ps, 1'234'567'890'000);
  EXPECT_EQ(deep.unit, "ns");
}

TEST(TimeTicks, LabelsAreAsExactAsTheResolution) {
  EXPECT_EQ(time_label(3'312'500'000, 100'000), "3.3125 ms");
  EXPECT_EQ(time_label(3'312'500'000, 1e9), "3 ms");
  EXPECT_EQ(time_label(0, 1e6), "0 ps");
  EXPECT_EQ(time_label(-1'500'000, 500'000), "-1.5 us");
  EXPECT_EQ(time_label(12, 0.001), "12 ps");
}

TEST(SliceText, SaysWhatItIsAndHowFarThePredictionIsOff) {
  Slice s = slice(OpKind::kReceive, 3, 17, 2, 0, 1'000'000, 3'000'000);
  s.peer = 2;
  s.kv_shard = 1;
  s.bytes = 1 << 20;
  Slice other = s;
  other.end_ps = 2'000'000;
  EXPECT_EQ(slice_title(s), "receive from 2, KV 1");
  const auto lines = describe_slice(s, TimelineOrigin::kMeasured, &other);
  ASSERT_EQ(lines.size(), 5U);
  EXPECT_THAT(lines[0], HasSubstr("op r3:17"));
  EXPECT_THAT(lines[1], HasSubstr("2.00 us"));
  EXPECT_THAT(lines[2], HasSubstr("waited 1.00 us"));
  EXPECT_THAT(lines[3], HasSubstr("-50.0 %"));
  EXPECT_THAT(lines[4], HasSubstr("1.00 MiB"));
}

}  // namespace
}  // namespace ring
