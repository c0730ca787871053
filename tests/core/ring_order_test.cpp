// The best ring against all rings: brute force is the oracle.
#include "core/ring_order.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <numeric>
#include <tuple>

namespace ring {
namespace {

/// What rings are ranked by, worst level first; the smaller the better.
using Score = std::tuple<std::vector<int>, int>;

/// Counted afresh, hop by hop.
Score score_of(const HopTable& table, const std::vector<int>& order, bool& closes) {
  const int levels = *std::max_element(table.level.begin(), table.level.end()) + 1;
  std::vector<int> counts(static_cast<size_t>(std::max(levels, 0)), 0);
  std::vector<int> uses(64, 0);
  closes = true;
  for (size_t i = 0; i < order.size(); ++i) {
    const auto at = static_cast<size_t>(order[i] * table.ranks + order[(i + 1) % order.size()]);
    if (table.level[at] < 0) {
      closes = false;
      return {};
    }
    ++counts[counts.size() - 1 - static_cast<size_t>(table.level[at])];
    for (const int thing : table.shared[at]) ++uses[static_cast<size_t>(thing)];
  }
  return {counts, std::max(1, *std::max_element(uses.begin(), uses.end()))};
}

/// The least score of all (ranks - 1)! rings; none when no ring closes.
std::optional<Score> brute_force(const HopTable& table) {
  std::vector<int> order(static_cast<size_t>(table.ranks));
  std::iota(order.begin(), order.end(), 0);
  std::optional<Score> best;
  do {
    bool closes = false;
    const Score score = score_of(table, order, closes);
    if (closes && (!best || score < *best)) best = score;
  } while (std::next_permutation(order.begin() + 1, order.end()));
  return best;
}

HopTable random_table(int ranks, int levels, bool has_gaps) {
  HopTable table{ranks, {}, {}};
  for (int i = 0; i < ranks * ranks; ++i) {
    const int from = i / ranks, to = i % ranks;
    const int low = has_gaps ? -1 : 0;
    table.level.push_back(from == to ? -1 : *rc::gen::inRange(low, levels));
    auto& things = table.shared.emplace_back();
    if (from != to && *rc::gen::inRange(0, 3) == 0) things.push_back(*rc::gen::inRange(0, 4));
  }
  return table;
}

RC_GTEST_PROP(RingOrder, NoRingIsBetter, ()) {
  const HopTable table =
      random_table(*rc::gen::inRange(2, 8), *rc::gen::inRange(1, 5), *rc::gen::inRange(0, 3) == 0);
  const RingOrder ring = best_ring_order(table);
  const auto best = brute_force(table);
  RC_ASSERT(ring.order.empty() == !best);
  if (!best) return;
  bool closes = false;
  const Score score = score_of(table, ring.order, closes);
  RC_ASSERT(closes);
  RC_ASSERT(score == *best);
  RC_ASSERT(ring.is_best && ring.is_sharing_least);
  RC_ASSERT(ring.order[0] == 0);
  RC_ASSERT(ring.sharing == std::get<1>(score));
}

RC_GTEST_PROP(RingOrder, OtherNumbersForTheRanksGiveARingAsGood, ()) {
  const int ranks = *rc::gen::inRange(2, 9);
  const HopTable table = random_table(ranks, 4, false);
  std::vector<int> name(static_cast<size_t>(ranks));
  std::iota(name.begin(), name.end(), 0);
  for (size_t i = name.size(); i > 1; --i) {
    std::swap(name[i - 1], name[static_cast<size_t>(*rc::gen::inRange(0, static_cast<int>(i)))]);
  }
  HopTable renamed = table;
  for (int a = 0; a < ranks; ++a) {
    for (int b = 0; b < ranks; ++b) {
      const auto to =
          static_cast<size_t>(name[static_cast<size_t>(a)] * ranks + name[static_cast<size_t>(b)]);
      const auto from = static_cast<size_t>(a * ranks + b);
      renamed.level[to] = table.level[from];
      renamed.shared[to] = table.shared[from];
    }
  }
  const RingOrder one = best_ring_order(table), other = best_ring_order(renamed);
  RC_ASSERT(one.hops_at_level == other.hops_at_level);
  RC_ASSERT(one.sharing == other.sharing);
}

/// The method for many ranks gives rings, never better than the best, and bounds that hold.
RC_GTEST_PROP(RingOrder, TheHeuristicsBoundsHold, ()) {
  const HopTable table = random_table(*rc::gen::inRange(3, 8), *rc::gen::inRange(1, 5), false);
  const RingOrder good = good_ring_order(table), best = best_ring_order(table);
  RC_ASSERT(good.order.size() == best.order.size());
  std::vector<int> sorted = good.order;
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 0; i < sorted.size(); ++i) RC_ASSERT(sorted[i] == static_cast<int>(i));
  RC_ASSERT(good.worst_level >= best.worst_level);
  RC_ASSERT(good.bound_worst_level <= best.worst_level);
  const auto worse = [](const RingOrder& ring, int level) {
    int hops = 0;
    for (size_t l = static_cast<size_t>(level); l < ring.hops_at_level.size(); ++l) {
      hops += ring.hops_at_level[l];
    }
    return hops;
  };
  RC_ASSERT(good.bound_worst_hops <= worse(best, good.worst_level));
  if (good.is_best) RC_ASSERT(good.hops_at_level == best.hops_at_level);
}

/// Nodes of four ranks: good hops inside, bad ones between.
HopTable islands(int nodes, int ranks_per_node) {
  const int ranks = nodes * ranks_per_node;
  HopTable table{ranks, {}, {}};
  for (int i = 0; i < ranks * ranks; ++i) {
    const int from = i / ranks, to = i % ranks;
    const bool is_inside = from % nodes == to % nodes;  // numbered across nodes, to be nasty
    table.level.push_back(from == to ? -1 : is_inside ? 0 : 1);
  }
  return table;
}

TEST(RingOrder, ManyRanksReachTheBoundWhereNodesAreIslands) {
  for (const int nodes : {5, 16, 32}) {
    const RingOrder ring = best_ring_order(islands(nodes, 4));
    EXPECT_EQ(ring.worst_level, 1);
    EXPECT_EQ(ring.worst_hops, nodes) << "one hop out of every node";
    EXPECT_EQ(ring.bound_worst_hops, nodes);
    EXPECT_TRUE(ring.is_best);
  }
}

TEST(RingOrder, SixteenRanksAreExact) {
  const RingOrder ring = best_ring_order(islands(4, 4));
  EXPECT_EQ(ring.worst_hops, 4);
  EXPECT_TRUE(ring.is_best);
  EXPECT_EQ(ring.order.size(), 16U);
}

TEST(RingOrder, OneAndTwoRanks) {
  EXPECT_EQ(best_ring_order({1, {-1}, {}}).order, std::vector<int>{0});
  const RingOrder two = best_ring_order({2, {-1, 3, 1, -1}, {}});
  EXPECT_EQ(two.order, (std::vector<int>{0, 1}));
  EXPECT_EQ(two.worst_level, 3);
  EXPECT_TRUE(best_ring_order({2, {-1, 0, -1, -1}, {}}).order.empty()) << "no way back";
}

}  // namespace
}  // namespace ring
