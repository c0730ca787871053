// RingOrder: in which order ranks form a ring, so that its hops are as good as they can be.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ring {

/// What every possible hop is worth. Hops are directed.
struct HopTable {
  int ranks = 0;
  /// [from * ranks + to]: 0 is best; -1: there is no way.
  std::vector<int> level;
  /// [from * ranks + to]: what hops had better not share (directions of NICs), by number. May be
  /// empty: nothing is shared.
  std::vector<std::vector<int>> shared;

  int at(int from, int to) const {
    return level[static_cast<size_t>(from) * static_cast<size_t>(ranks) + static_cast<size_t>(to)];
  }
};

/// Up to this many ranks the best order is found for certain.
inline constexpr int kMostExactRanks = 16;
/// More are refused: all pairs of them are looked at.
inline constexpr int kMostPlacedRanks = 512;
/// Of more levels than this the best ones are taken as one.
inline constexpr int kMostHopLevels = 26;

struct RingOrder {
  std::vector<int> order;          ///< Begins with rank 0; empty when no ring closes.
  std::vector<int> hops_at_level;  ///< By level, of the ring; levels as far as the table has them.
  int worst_level = -1;
  int worst_hops = 0;  ///< How many hops are of that level.
  int sharing = 1;     ///< Most hops that use the same shared thing; 1: nothing is shared.
  /// No ring has a better worst level, or at that level fewer hops, or at better ones.
  bool is_best = false;
  bool is_sharing_least = false;  ///< No such ring shares less.
  int bound_worst_level = -1;     ///< No ring has a better worst level than this,
  int bound_worst_hops = 0;       ///< or at `worst_level` fewer hops than this.
};

/// Rings are ranked by their worst level, then by how many hops are of that level, then by the
/// number of hops at the next better one and so on, then by `sharing`, then by the order itself.
///
/// Up to `kMostExactRanks` all of it is exact: a table over all sets of ranks gives the least
/// numbers of hops, then rings that reach them are gone through for the least sharing (at most
/// some millions of steps; `is_sharing_least` says whether they were enough). More ranks are joined
/// hop by hop, best hops first, and the ring is improved by moving and reversing parts of it until
/// nothing helps; what no ring can do better is bounded by the best hop of each rank and by the
/// number of groups between which there are only bad hops.
/// Throws Error(kUsage) for more than `kMostPlacedRanks`.
RingOrder best_ring_order(const HopTable& hops);

/// The same for any number of ranks by the method for many; for tests and comparison.
RingOrder good_ring_order(const HopTable& hops);

/// Order, levels and sharing of a given ring, without bounds.
RingOrder judge_ring_order(const HopTable& hops, std::vector<int> order);

}  // namespace ring
