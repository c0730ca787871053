#include "core/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "core/comparison.h"
#include "core/error.h"

namespace ring {
namespace {

Slice slice_at(int rank, int64_t index, OpKind kind, Picoseconds posted, Picoseconds start,
               Picoseconds end) {
  Slice slice;
  slice.op = {rank, index};
  slice.kind = kind;
  slice.posted_ps = posted;
  slice.start_ps = start;
  slice.end_ps = end;
  return slice;
}

Timeline two_ranks() {
  Timeline timeline;
  timeline.ranks = 2;
  timeline.lanes = 3;
  timeline.slices = {
      slice_at(0, 0, OpKind::kAttend, 0, 0, 60), slice_at(0, 1, OpKind::kReceive, 10, 40, 90),
      slice_at(0, 2, OpKind::kAttend, 90, 90, 100), slice_at(1, 0, OpKind::kAttend, 0, 0, 30)};
  return timeline;
}

TEST(Metrics, ExposedIsWhatComputationDoesNotCover) {
  const Metrics metrics = measure(two_ranks());
  EXPECT_EQ(metrics.makespan_ps, 100);
  EXPECT_EQ(metrics.ranks[0].compute_ps, 70);
  EXPECT_EQ(metrics.ranks[0].communication_ps, 50);
  EXPECT_EQ(metrics.ranks[0].waiting_ps, 30);
  EXPECT_EQ(metrics.ranks[0].exposed_ps, 30);
  EXPECT_EQ(metrics.ranks[1].finish_ps, 30);
  EXPECT_DOUBLE_EQ(metrics.overlap, 1 - 30.0 / 50.0);
  EXPECT_DOUBLE_EQ(metrics.communication_ratio, 0.5);
  EXPECT_DOUBLE_EQ(metrics.imbalance, 70.0 / 50.0 - 1);
  EXPECT_EQ(metrics.busiest_rank, 0);
  EXPECT_EQ(metrics.idlest_rank, 1);
  EXPECT_THAT(describe_balance(metrics), testing::HasSubstr("rank 0 computes 70 %"));
}

TEST(Metrics, AnEmptyTimelineIsNoDivisionByZero) {
  Timeline timeline;
  EXPECT_EQ(measure(timeline).makespan_ps, 0);
  timeline.ranks = 3;
  EXPECT_EQ(measure(timeline).overlap, 1);
}

RC_GTEST_PROP(MetricsProperty, ExposedAgreesWithCountingTicks, ()) {
  Timeline timeline;
  timeline.ranks = 1;
  std::vector<int> compute(64, 0), transfer(64, 0);
  const int count = *rc::gen::inRange(0, 12);
  for (int i = 0; i < count; ++i) {
    const auto begin = *rc::gen::inRange<Picoseconds>(0, 60);
    const auto end = *rc::gen::inRange<Picoseconds>(begin, 63);
    const bool is_compute = *rc::gen::arbitrary<bool>();
    timeline.slices.push_back(
        slice_at(0, i, is_compute ? OpKind::kAttend : OpKind::kSend, begin, begin, end));
    for (Picoseconds t = begin; t < end; ++t) {
      (is_compute ? compute : transfer)[static_cast<size_t>(t)] = 1;
    }
  }
  Picoseconds exposed = 0;
  for (size_t t = 0; t < 64; ++t) exposed += transfer[t] != 0 && compute[t] == 0 ? 1 : 0;
  RC_ASSERT(measure(timeline).ranks[0].exposed_ps == exposed);
}

TEST(Comparison, PairsOpsByIdAndSumsByKind) {
  const Timeline measured = two_ranks();
  Timeline predicted = two_ranks();
  predicted.slices[2].end_ps = 120;
  predicted.slices.pop_back();
  const Comparison result = compare(measured, predicted);
  EXPECT_DOUBLE_EQ(result.makespan_error, 0.2);
  EXPECT_EQ(result.only_measured, 1);
  ASSERT_EQ(result.ops.size(), 3u);
  EXPECT_EQ(result.ops[2].duration_ps, 20);
  EXPECT_EQ(result.kinds[0].measured_ps, 70);
  EXPECT_EQ(result.kinds[0].predicted_ps, 90);
}

TEST(Comparison, RefusesDifferentPrograms) {
  const Timeline measured = two_ranks();
  Timeline other = two_ranks();
  other.slices[0].kind = OpKind::kMerge;
  EXPECT_THROW(compare(measured, other), Error);
  other.ranks = 3;
  EXPECT_THROW(compare(measured, other), Error);
}

}  // namespace
}  // namespace ring
