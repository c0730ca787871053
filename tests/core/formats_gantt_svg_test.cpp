#include "core/formats/gantt_svg.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <pugixml.hpp>

#include "core/formats/bar_folding.h"
#include "core/formats/op_colors.h"
#include "core/formats/svg_writer.h"
#include "core/formats/time_axis.h"
#include "core/formats/timeline_csv.h"
#include "core/formats/timeline_rows.h"
#include "tests/core/formats_random.h"
#include "tests/core/formats_testing.h"

namespace ring {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

Slice slice(int rank, int lane, OpKind kind, Picoseconds posted, Picoseconds start,
            Picoseconds end) {
  Slice s;
  s.op.rank = rank;
  s.kind = kind;
  s.lane = lane;
  s.posted_ps = posted;
  s.start_ps = start;
  s.end_ps = end;
  return s;
}

/// `count` short attends in a row on each of two ranks.
Timeline many_slices(TimelineOrigin origin, int count) {
  Timeline timeline;
  timeline.origin = origin;
  timeline.ranks = 2;
  timeline.lanes = 1;
  for (int rank = 0; rank < 2; ++rank) {
    for (int i = 0; i < count; ++i) {
      timeline.slices.push_back(
          slice(rank, 0, OpKind::kAttend, i * 1000, i * 1000, i * 1000 + 900));
    }
  }
  return timeline;
}

TEST(TimelineRows, LanesAreNamedByTheirUseAndWaitsStandApart) {
  Timeline timeline;
  timeline.slices = {slice(0, 0, OpKind::kAttend, 5, 5, 9), slice(0, 1, OpKind::kSend, 0, 4, 9),
                     slice(0, 2, OpKind::kReceive, 0, 0, 9),
                     slice(0, 3, OpKind::kReceive, 0, 0, 9)};
  const std::vector<TimelineRow> rows = timeline_rows(timeline);
  ASSERT_EQ(rows.size(), 4U);
  EXPECT_EQ(rows[0].label, "compute");
  EXPECT_EQ(rows[1].label, "send");
  EXPECT_EQ(rows[3].label, "receive 1");
  ASSERT_EQ(rows[1].bars.size(), 2U);
  EXPECT_TRUE(rows[1].bars[0].is_wait);
  EXPECT_EQ(rows[1].bars[0].end_ps, 4);
  EXPECT_EQ(rows[0].bars.size(), 1U);
}

RC_GTEST_PROP(TimelineRows, BarsNeverOverlapAndNoneIsLost, (uint64_t seed)) {
  const Timeline timeline = RandomFiles(seed).timeline(TimelineOrigin::kMeasured);
  size_t found = 0;
  for (const TimelineRow& row : timeline_rows(timeline)) {
    Picoseconds busy_until = INT64_MIN;
    for (const RowBar& bar : row.bars) {
      RC_ASSERT(bar.begin_ps >= busy_until && bar.begin_ps <= bar.end_ps);
      RC_ASSERT(timeline.slices[bar.slice].op.rank == row.rank);
      busy_until = bar.end_ps;
      found += bar.is_wait ? 0U : 1U;
    }
  }
  RC_ASSERT(found == timeline.slices.size());
}

/// The time that bars cover, in pixels, is the time that slices cover, to a pixel per change.
RC_GTEST_PROP(BarFolding, KeepsWhereTimeIsSpent, (uint64_t seed)) {
  RandomFiles random(seed);
  Timeline timeline;
  Picoseconds now = 0;
  double busy = 0;
  for (int i = 0; i < 3000; ++i) {
    const Picoseconds length = random.whole(1, 1000) * (random.whole(0, 99) == 0 ? 100 : 1);
    timeline.slices.push_back(slice(0, 0, OpKind::kAttend, now, now, now + length));
    now += length;
    busy += static_cast<double>(length);
  }
  const std::vector<TimelineRow> rows = timeline_rows(timeline);
  const auto bars = fold_bars(timeline, rows[0], 0, 500, now);
  double shown = 0, at = 0;
  for (const FoldedBar& bar : bars) {
    RC_ASSERT(bar.x >= at - 1.001);
    at = bar.x + bar.width;
    shown += bar.width;
  }
  RC_ASSERT(bars.size() <= 1000U);
  RC_ASSERT(std::abs(shown - 500 * busy / static_cast<double>(now)) <
            2.0 * static_cast<double>(bars.size()));
}

TEST(BarFolding, MostlyIdleColumnsStayEmpty) {
  Timeline timeline;
  for (int i = 0; i < 1000; ++i) {
    timeline.slices.push_back(slice(0, 0, OpKind::kAttend, i * 100, i * 100, i * 100 + 10));
  }
  const std::vector<TimelineRow> rows = timeline_rows(timeline);
  EXPECT_TRUE(fold_bars(timeline, rows[0], 0, 100, 100'000).empty());
}

TEST(GanttSvg, StaysSmallHoweverManySlices) {
  const Timeline measured = many_slices(TimelineOrigin::kMeasured, 100'000);
  const Timeline predicted = many_slices(TimelineOrigin::kPredicted, 100'000);
  EXPECT_LT(gantt_svg(&measured, &predicted, {"many"}).size(), 100'000U);
}

TEST(GanttSvg, ShowsBothTimelines) {
  const Timeline measured = many_slices(TimelineOrigin::kMeasured, 5);
  Timeline predicted = many_slices(TimelineOrigin::kPredicted, 5);
  predicted.is_complete = false;
  const std::string svg = gantt_svg(&measured, &predicted, {"a < b & c"});
  EXPECT_THAT(svg, HasSubstr("a &lt; b &amp; c"));
  EXPECT_THAT(svg, HasSubstr("url(#hatch-0072B2)"));
  EXPECT_THAT(svg, HasSubstr("error +0.0 %"));
  EXPECT_THAT(svg, HasSubstr("(incomplete)"));
  EXPECT_THAT(svg, HasSubstr(">rank 1</text>"));
  EXPECT_THAT(svg, HasSubstr("time in ns"));
  const std::string single = gantt_svg(&measured, nullptr, {"one"});
  EXPECT_THAT(single, Not(HasSubstr("hatch")));
  EXPECT_THAT(single, Not(HasSubstr("predicted")));
}

TEST(GanttSvg, SaysWhichRanksAreLeftOut) {
  Timeline timeline;
  for (int rank = 0; rank < 20; ++rank) {
    timeline.slices.push_back(slice(rank, 0, OpKind::kAttend, 0, 0, 10));
  }
  const std::string svg = gantt_svg(nullptr, &timeline, {"x", 800, 16});
  EXPECT_THAT(svg, HasSubstr("4 further ranks are not shown"));
  EXPECT_THAT(svg, Not(HasSubstr(">rank 16</text>")));
}

RC_GTEST_PROP(GanttSvg, IsXmlForAnyTimeline, (uint64_t seed)) {
  RandomFiles random(seed);
  const Timeline a = random.timeline(TimelineOrigin::kMeasured);
  const Timeline b = random.timeline(TimelineOrigin::kPredicted);
  const std::string svg = gantt_svg(&a, &b, {random.text()});
  pugi::xml_document document;
  RC_ASSERT(static_cast<bool>(document.load_string(svg.c_str())));
  RC_ASSERT(svg.find("nan") == std::string::npos && svg.find("inf") == std::string::npos);
}

TEST(TimeAxis, TicksAreRound) {
  std::vector<std::string> labels;
  const TimeAxis axis = time_axis(12'300'000'000, 6);
  for (const TimeTick& tick : axis.ticks) labels.push_back(tick.label);
  EXPECT_EQ(axis.unit, "ms");
  EXPECT_THAT(labels, ElementsAre("0", "2", "4", "6", "8", "10", "12"));
  EXPECT_EQ(time_axis(1, 6).unit, "ps");
  EXPECT_EQ(time_axis(0, 6).ticks.size(), 1U);
  EXPECT_LE(time_axis(INT64_MAX, 10).ticks.size(), 11U);
}

RC_GTEST_PROP(TimeAxis, NeverTooManyAndNeverTooFew, ()) {
  const Picoseconds end = *rc::gen::inRange<int64_t>(10, INT64_MAX);
  const TimeAxis axis = time_axis(end, 10);
  RC_ASSERT(axis.ticks.size() <= 11U && axis.ticks.size() >= 4U);
  RC_ASSERT(axis.ticks.back().at_ps <= end);
}

TEST(SvgWriter, NumbersAndColours) {
  EXPECT_EQ(svg_number(12.0), "12");
  EXPECT_EQ(svg_number(12.506), "12.51");
  EXPECT_EQ(svg_number(-0.001), "0");
  EXPECT_EQ(mixed("#0072B2", 0), "#0072B2");
  EXPECT_EQ(mixed("#0072B2", 1), "#FFFFFF");
  EXPECT_EQ(mixed("#0072B2", -1), "#000000");
}

TEST(TimelineCsv, OneSliceALine) {
  Timeline timeline;
  timeline.origin = TimelineOrigin::kMeasured;
  timeline.slices = {slice(1, 2, OpKind::kReceive, 3, 4, INT64_MAX)};
  timeline.slices[0].peer = 0;
  timeline.slices[0].bytes = 77;
  const Timeline* timelines[] = {&timeline};
  EXPECT_EQ(timeline_csv(timelines),
            "origin,rank,index,kind,lane,step,peer,kv_shard,bytes,flops,posted_ps,start_ps,end_ps\n"
            "measured,1,0,receive,2,0,0,,77,0,3,4,9223372036854775807\n");
}

}  // namespace
}  // namespace ring
