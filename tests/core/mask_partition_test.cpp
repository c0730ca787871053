// Partitions made for a mask: documents one by one, and ranges of equal cost.
#include "core/mask_partition.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <vector>

#include "core/error.h"

namespace ring {
namespace {

std::vector<int64_t> pairs_of(const Mask& mask, const Partition& partition) {
  std::vector<int64_t> pairs;
  for (int rank = 0; rank < partition.ranks(); ++rank) {
    int64_t count = 0;
    for (const AffineRange& range : partition.shard(rank)) {
      for (int64_t i = 0; i < range.count; ++i) {
        const KeyInterval seen = mask.visible(range.position(i));
        count += std::max<int64_t>(seen.end - seen.begin, 0);
      }
    }
    pairs.push_back(count);
  }
  return pairs;
}

TEST(DocumentZigzag, EveryDocumentIsBalancedByItself) {
  const Mask mask = Mask::documents({0, 8, 24}, true);
  const Partition partition = document_zigzag(mask, 2);
  EXPECT_EQ(partition.shard(0), (TokenRanges{{0, 2, 1}, {6, 2, 1}, {8, 4, 1}, {20, 4, 1}}));
  EXPECT_EQ(partition.shard(1), (TokenRanges{{2, 4, 1}, {12, 8, 1}}));
  const auto pairs = pairs_of(mask, partition);
  EXPECT_EQ(pairs[0], pairs[1]);
}

TEST(DocumentZigzag, ShortAndEmptyDocuments) {
  const Mask mask = Mask::documents({0, 1, 1, 4, 20}, true);
  const Partition partition = document_zigzag(mask, 8);  // Shorter than the ring, too.
  int64_t held = 0;
  for (int rank = 0; rank < 8; ++rank) held += partition.shard_tokens(rank);
  EXPECT_EQ(held, 20);
}

TEST(DocumentZigzag, OneDocumentIsPlainZigzag) {
  for (const Mask& mask : {Mask::causal(37), Mask::sliding_window(37, 5), Mask::full(37)}) {
    const Partition plain = Partition::zigzag(37, 3);
    const Partition partition = document_zigzag(mask, 3);
    for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(partition.shard(rank), plain.shard(rank));
  }
}

// No cut can be nearer than half of the heaviest query.
RC_GTEST_PROP(BalancedProperty, CostsAreAsTheSpeeds, ()) {
  const int64_t tokens = *rc::gen::inRange<int64_t>(1, 120);
  const auto text = *rc::gen::element<std::string>("full", "causal", "window:9", "chunked:13",
                                                   "prefix:1", "decode:1");
  const Mask mask = Mask::parse(text, tokens);
  const int ranks = *rc::gen::inRange(1, 7);
  std::vector<double> speeds;
  double sum = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    speeds.push_back(*rc::gen::element(0.5, 1.0, 2.0));
    sum += speeds.back();
  }
  const auto pairs = pairs_of(mask, balanced(mask, ranks, speeds));
  int64_t all = 0, heaviest = 0;
  for (int64_t position = 0; position < tokens; ++position) {
    const KeyInterval seen = mask.visible(position);
    const int64_t count = std::max<int64_t>(seen.end - seen.begin, 0);
    all += count;
    heaviest = std::max(heaviest, count);
  }
  for (int rank = 0; rank < ranks; ++rank) {
    const double wanted = static_cast<double>(all) * speeds[static_cast<size_t>(rank)] / sum;
    RC_ASSERT(std::abs(static_cast<double>(pairs[static_cast<size_t>(rank)]) - wanted) <=
              static_cast<double>(heaviest) + 1e-6);
  }
}

TEST(Balanced, SlowRanksGetLess) {
  const Partition partition = balanced(Mask::full(100), 2, std::vector<double>{1, 3});
  EXPECT_EQ(partition.shard_tokens(0), 25);
  EXPECT_EQ(partition.shard_tokens(1), 75);
  EXPECT_THROW(make_partition("balanced:1,2,3", Mask::full(10), 2), Error);
  EXPECT_THROW(make_partition("balanced:1,0", Mask::full(10), 2), Error);
  EXPECT_THROW(make_partition("balanced:1,x", Mask::full(10), 2), Error);
  EXPECT_EQ(make_partition("balanced:1,0.5", Mask::full(30), 2).shard_tokens(0), 20);
}

TEST(Balanced, AMaskThatShowsNothingDealsTokens) {
  const Partition partition = balanced(Mask::from_segments(12, {}), 3);
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(partition.shard_tokens(rank), 4);
}

TEST(ShorterLast, OnlyTheLastIsShorter) {
  const Partition partition = Partition::parse("shorter-last", 10, 4);
  const int64_t wanted[] = {3, 3, 3, 1};
  for (int rank = 0; rank < 4; ++rank) EXPECT_EQ(partition.shard_tokens(rank), wanted[rank]);
  EXPECT_EQ(Partition::shorter_last(4, 6).shard_tokens(5), 0);
}

}  // namespace
}  // namespace ring
