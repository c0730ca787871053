#include "core/hop_activity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ring {
namespace {

Slice receive(int rank, int peer, Picoseconds start_ps, Picoseconds end_ps, Bytes bytes) {
  Slice slice;
  slice.op.rank = rank;
  slice.kind = OpKind::kReceive;
  slice.lane = 2;
  slice.peer = peer;
  slice.bytes = bytes;
  slice.posted_ps = 0;
  slice.start_ps = start_ps;
  slice.end_ps = end_ps;
  return slice;
}

Slice attend(int rank, Picoseconds start_ps, Picoseconds end_ps) {
  Slice slice;
  slice.op.rank = rank;
  slice.kind = OpKind::kAttend;
  slice.start_ps = start_ps;
  slice.end_ps = end_ps;
  return slice;
}

Timeline two_ranks() {
  Timeline timeline;
  timeline.ranks = 2;
  timeline.lanes = 3;
  timeline.slices = {attend(0, 0, 100), receive(0, 1, 20, 60, 4000), attend(1, 0, 50),
                     receive(1, 0, 0, 50, 1000), receive(1, 0, 25, 75, 1000)};
  return timeline;
}

TEST(HopActivity, CountsOverlappingTransfersOnce) {
  const Timeline timeline = two_ranks();
  const HopActivity activity(timeline);
  ASSERT_EQ(activity.hops().size(), 2U);
  const Hop& first = activity.hops()[0];
  EXPECT_EQ(first.from, 0);
  EXPECT_EQ(first.to, 1);
  EXPECT_EQ(first.bytes, 2000);
  EXPECT_EQ(first.busy_ps, 75);
  EXPECT_DOUBLE_EQ(first.busy_share, 0.75);
  EXPECT_EQ(activity.hops()[1].busy_ps, 40);
}

TEST(HopActivity, KnowsWhatIsUnderWay) {
  const Timeline timeline = two_ranks();
  const HopActivity activity(timeline);
  EXPECT_EQ(activity.at(30).size(), 3U);
  const std::vector<HopTransfer> late = activity.at(60);
  ASSERT_EQ(late.size(), 1U);
  EXPECT_EQ(late[0].hop, 0U);
  EXPECT_EQ(late[0].slice, 4U);
  EXPECT_DOUBLE_EQ(late[0].done, 0.7);
  EXPECT_DOUBLE_EQ(late[0].bytes_per_s, 1000 / 50e-12);
  EXPECT_TRUE(activity.at(75).empty());
  EXPECT_TRUE(activity.at(-1).empty());
}

TEST(HopActivity, FindsTheLeastSlackOfAHop) {
  Timeline timeline = two_ranks();
  timeline.slices[1].op.index = 1;
  timeline.slices[3].op.index = 1;
  timeline.slices[4].op.index = 2;
  const HopActivity activity(timeline);
  EXPECT_THAT(activity.least_slack_ps({{0, 9}, {0, 7, 5}}), testing::ElementsAre(5, 9));
  EXPECT_THAT(activity.least_slack_ps({{0, -1}, {0, 7, -1}}), testing::ElementsAre(7, -1));
}

TEST(HopActivity, KnowsWhoComputes) {
  const Timeline timeline = two_ranks();
  const HopActivity activity(timeline);
  EXPECT_THAT(activity.computing_at(49), testing::ElementsAre(true, true));
  EXPECT_THAT(activity.computing_at(50), testing::ElementsAre(true, false));
  EXPECT_THAT(activity.computing_at(100), testing::ElementsAre(false, false));
}

}  // namespace
}  // namespace ring
