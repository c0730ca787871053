#include "core/critical_path.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <numeric>

#include "core/blame.h"
#include "core/bubbles.h"
#include "core/error.h"
#include "core/slack.h"
#include "tests/core/random_run.h"

namespace ring {
namespace {

using test::random_run;
using test::RandomRun;
using test::timed;

/// The three kinds of timelines that must be explained without remainder.
std::vector<Timeline> versions_of(const RandomRun& run, uint64_t seed) {
  const Timeline exact = timed(run);
  const Timeline jittered = test::with_jitter(exact, seed + 1);
  return {exact, jittered, test::partial(exact, seed + 2), test::partial(jittered, seed + 3)};
}

/// Alone times made up at random: some unknown, some shorter than the op was, some longer.
AloneTimes random_alone_times(const RunGraph& graph, uint64_t seed) {
  std::mt19937_64 random(seed);
  AloneTimes alone;
  for (int64_t n = 0; n < graph.nodes(); ++n) {
    alone.alone_ps.push_back(random() % 3 == 0 ? -1 : static_cast<Picoseconds>(random() % 1000));
    alone.tightest_link.push_back(static_cast<int32_t>(random() % 3) - 1);
  }
  return alone;
}

RC_GTEST_PROP(CriticalPath, TilesTheRun, (uint64_t seed)) {
  const RandomRun run = random_run(seed);
  for (const Timeline& timeline : versions_of(run, seed)) {
    const RunGraph graph(run.program, timeline);
    const CriticalPath path = critical_path(graph);
    RC_ASSERT(path.makespan_ps == timeline.makespan_ps());
    Picoseconds at_ps = 0;
    for (const PathSegment& segment : path.segments) {
      RC_ASSERT(segment.begin_ps == at_ps);
      RC_ASSERT(segment.end_ps > segment.begin_ps);
      at_ps = segment.end_ps;
    }
    RC_ASSERT(at_ps == path.makespan_ps);
  }
}

RC_GTEST_PROP(CriticalPath, OpsOfThePathRanThen, (uint64_t seed)) {
  const RandomRun run = random_run(seed);
  const Timeline timeline = timed(run);
  const RunGraph graph(run.program, timeline);
  for (const PathSegment& segment : critical_path(graph).segments) {
    const Slice& slice = graph.slice(graph.node(segment.op));
    RC_ASSERT(segment.kind != SegmentKind::kOp || segment.end_ps <= slice.end_ps);
    RC_ASSERT(segment.kind == SegmentKind::kOp || segment.end_ps <= slice.start_ps);
    RC_ASSERT(graph.slice(graph.node(segment.released_by)).end_ps <= segment.begin_ps ||
              segment.release == ReleaseKind::kStartOfRun);
  }
}

RC_GTEST_PROP(CriticalPath, PiecesTileTheSegments, (uint64_t seed)) {
  const RandomRun run = random_run(seed);
  for (const Timeline& timeline : versions_of(run, seed)) {
    const RunGraph graph(run.program, timeline);
    Picoseconds at_ps = 0;
    for (const PathPiece& piece : split_at_credits(critical_path(graph).segments)) {
      RC_ASSERT(piece.segment.begin_ps == at_ps);
      RC_ASSERT(piece.segment.end_ps > at_ps);
      at_ps = piece.segment.end_ps;
    }
    RC_ASSERT(at_ps == timeline.makespan_ps());
  }
}

RC_GTEST_PROP(Blame, AddsUpToTheMakespan, (uint64_t seed)) {
  const RandomRun run = random_run(seed);
  for (const Timeline& timeline : versions_of(run, seed)) {
    const RunGraph graph(run.program, timeline);
    for (const AloneTimes& alone : {AloneTimes{}, random_alone_times(graph, seed)}) {
      const Blame blame = blame_path(graph, critical_path(graph), alone);
      Picoseconds items_ps = 0;
      for (const BlameItem& item : blame.items) {
        RC_ASSERT(item.time_ps > 0);
        items_ps += item.time_ps;
      }
      RC_ASSERT(items_ps == timeline.makespan_ps());
      RC_ASSERT(std::accumulate(blame.by_kind_ps.begin(), blame.by_kind_ps.end(), Picoseconds{0}) ==
                timeline.makespan_ps());
    }
  }
}

/// Busy time by marking every picosecond, which shares nothing with intervals that are joined.
std::vector<Picoseconds> busy_by_counting(const Timeline& timeline) {
  std::vector<std::vector<bool>> is_busy(
      static_cast<size_t>(timeline.ranks),
      std::vector<bool>(static_cast<size_t>(timeline.makespan_ps()), false));
  for (const Slice& slice : timeline.slices) {
    if (slice.kind == OpKind::kSend || slice.kind == OpKind::kReceive) continue;
    for (Picoseconds t = slice.start_ps; t < slice.end_ps; ++t) {
      is_busy[static_cast<size_t>(slice.op.rank)][static_cast<size_t>(t)] = true;
    }
  }
  std::vector<Picoseconds> busy_ps;
  for (const auto& marks : is_busy) {
    busy_ps.push_back(std::count(marks.begin(), marks.end(), true));
  }
  return busy_ps;
}

RC_GTEST_PROP(Bubbles, BusyAndBubblesFillEveryRank, (uint64_t seed)) {
  const RandomRun run = random_run(seed);
  for (const Timeline& timeline : versions_of(run, seed)) {
    const RunGraph graph(run.program, timeline);
    const std::vector<Picoseconds> busy_ps = busy_by_counting(timeline);
    for (const AloneTimes& alone : {AloneTimes{}, random_alone_times(graph, seed)}) {
      const RunAccount account = account_run(graph, alone);
      RC_ASSERT(account.makespan_ps == timeline.makespan_ps());
      std::vector<Picoseconds> listed(account.ranks.size(), 0);
      for (const Bubble& bubble : account.bubbles) {
        RC_ASSERT(bubble.begin_ps < bubble.end_ps);
        listed[static_cast<size_t>(bubble.rank)] += bubble.end_ps - bubble.begin_ps;
      }
      for (size_t r = 0; r < account.ranks.size(); ++r) {
        const RankAccount& rank = account.ranks[r];
        const Picoseconds idle_ps =
            std::accumulate(rank.bubble_ps.begin(), rank.bubble_ps.end(), Picoseconds{0});
        RC_ASSERT(rank.busy_ps == busy_ps[r]);
        RC_ASSERT(rank.busy_ps + idle_ps == account.makespan_ps);
        RC_ASSERT(listed[r] == idle_ps);
      }
    }
  }
}

RC_GTEST_PROP(Slack, IsWhatAnOpCanSlipAndNoMore, (uint64_t seed)) {
  const RandomRun run = random_run(seed);
  const Timeline timeline = timed(run);
  const RunGraph graph(run.program, timeline);
  const std::vector<Picoseconds> slack = slacks(graph);
  const OpId id = run.order[seed % run.order.size()];
  const Picoseconds own_ps = slack[static_cast<size_t>(graph.node(id))];
  RC_ASSERT(own_ps >= 0);
  RC_ASSERT(timed(run, id, own_ps).makespan_ps() == timeline.makespan_ps());
  RC_ASSERT(timed(run, id, own_ps + 7).makespan_ps() == timeline.makespan_ps() + 7);
}

RC_GTEST_PROP(Slack, OpsOfTheCriticalPathHaveNone, (uint64_t seed)) {
  const RandomRun run = random_run(seed);
  const Timeline timeline = timed(run);
  const RunGraph graph(run.program, timeline);
  const std::vector<Picoseconds> slack = slacks(graph);
  for (const PathSegment& segment : critical_path(graph).segments) {
    if (segment.kind != SegmentKind::kOp) continue;
    RC_ASSERT(slack[static_cast<size_t>(graph.node(segment.op))] == 0);
  }
}

RC_GTEST_PROP(Slack, SurvivesJitterAndMissingSlices, (uint64_t seed)) {
  const RandomRun run = random_run(seed);
  for (const Timeline& timeline : versions_of(run, seed)) {
    const RunGraph graph(run.program, timeline);
    RC_ASSERT(std::ssize(slacks(graph)) == graph.nodes());
  }
}

TEST(RunGraph, RefusesForeignAndRepeatedSlices) {
  const RandomRun run = random_run(1);
  Timeline timeline = timed(run);
  timeline.slices.push_back(timeline.slices.front());
  EXPECT_THROW(RunGraph(run.program, timeline), Error);
  timeline.slices.back().op = {0, 100000};
  EXPECT_THROW(RunGraph(run.program, timeline), Error);
  timeline.slices.back().op = {-1, 0};
  EXPECT_THROW(RunGraph(run.program, timeline), Error);
}

TEST(CriticalPath, OfNothingIsEmpty) {
  const RingProgram program;
  const Timeline timeline;
  const RunGraph graph(program, timeline);
  EXPECT_EQ(critical_path(graph).makespan_ps, 0);
  EXPECT_TRUE(critical_path(graph).segments.empty());
  EXPECT_TRUE(account_run(graph, {}).ranks.empty());
  EXPECT_TRUE(slacks(graph).empty());
}

}  // namespace
}  // namespace ring
