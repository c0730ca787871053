#include "core/partition.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "core/error.h"

namespace ring {
namespace {

std::vector<int64_t> tokens_of(const Partition& partition, int rank) {
  std::vector<int64_t> tokens;
  for (const AffineRange& range : partition.shard(rank)) {
    for (int64_t i = 0; i < range.count; ++i) tokens.push_back(range.position(i));
  }
  return tokens;
}

using Tokens = std::vector<int64_t>;

RC_GTEST_PROP(PartitionProperty, EveryTokenIsHeldOnceInAscendingOrder, ()) {
  const int64_t seq_len = *rc::gen::inRange<int64_t>(0, 70);
  const int ranks = *rc::gen::inRange(1, 12);
  const std::string text =
      *rc::gen::element<std::string>("contiguous", "zigzag", "striped", "striped:3", "striped:100");
  const Partition partition = Partition::parse(text, seq_len, ranks);
  RC_ASSERT(partition.ranks() == ranks);
  std::vector<int> holders(static_cast<size_t>(seq_len), 0);
  for (int rank = 0; rank < ranks; ++rank) {
    const Tokens tokens = tokens_of(partition, rank);
    RC_ASSERT(std::is_sorted(tokens.begin(), tokens.end()));
    RC_ASSERT(partition.shard_tokens(rank) == static_cast<int64_t>(tokens.size()));
    for (const int64_t token : tokens) ++holders[static_cast<size_t>(token)];
  }
  RC_ASSERT(std::all_of(holders.begin(), holders.end(), [](int n) { return n == 1; }));
  RC_ASSERT(Partition::parse(partition.text(), seq_len, ranks).text() == partition.text());
}

// Length 7 is padded to 8 in other implementations; the real tokens are these.
TEST(PartitionFaults, F14ZigzagOfSevenOverTwo) {
  const Partition partition = Partition::zigzag(7, 2);
  EXPECT_EQ(tokens_of(partition, 0), (Tokens{0, 1, 6}));
  EXPECT_EQ(tokens_of(partition, 1), (Tokens{2, 3, 4, 5}));
}

TEST(PartitionFaults, F16ChunkBeyondTheEndIsEmpty) {
  const Partition partition = Partition::zigzag(9, 2);
  EXPECT_EQ(tokens_of(partition, 0), (Tokens{0, 1, 2}));
  EXPECT_EQ(tokens_of(partition, 1), (Tokens{3, 4, 5, 6, 7, 8}));
}

TEST(PartitionFaults, F17ShorterThanTheRing) {
  const Partition partition = Partition::zigzag(3, 8);
  for (int rank = 0; rank < 8; ++rank) {
    EXPECT_EQ(tokens_of(partition, rank), rank < 3 ? Tokens{rank} : Tokens{}) << rank;
  }
  EXPECT_EQ(Partition::zigzag(0, 8).shard_tokens(0), 0);
  EXPECT_EQ(Partition::zigzag(1, 8).shard_tokens(0), 1);
}

TEST(PartitionFaults, F19Uneven) {
  const Partition partition = Partition::parse("uneven:5,3", 8, 2);
  EXPECT_EQ(tokens_of(partition, 1), (Tokens{5, 6, 7}));
}

TEST(Partition, RefusesWhatIsNoPartition) {
  EXPECT_THROW(Partition::parse("zigzig", 8, 2), Error);
  EXPECT_THROW(Partition::parse("uneven:5,4", 8, 2), Error);
  EXPECT_THROW(Partition::parse("uneven:8", 8, 2), Error);
  EXPECT_THROW(Partition::parse("uneven:9,-1", 8, 2), Error);
  EXPECT_THROW(Partition::parse("striped:0", 8, 2), Error);
  EXPECT_THROW(Partition::contiguous(8, 0), Error);
  EXPECT_THROW(Partition::from_ranges("x", 4, {{{0, 2, 1}}, {{1, 3, 1}}}), Error);
  EXPECT_THROW(Partition::from_ranges("x", 4, {{{0, 2, 1}}, {{3, 1, 1}}}), Error);
}

}  // namespace
}  // namespace ring
