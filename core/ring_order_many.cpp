// The order of many ranks: joined hop by hop, improved by moves, and bounded.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <span>
#include <tuple>
#include <utility>

#include "core/error.h"
#include "core/ring_order.h"

namespace ring {
namespace {

using Hop = std::pair<int, int>;

/// A ring that is being improved: order, hops by level, and uses of what is shared.
class Improver {
 public:
  Improver(const HopTable& hops, std::vector<int> order) : hops_(hops), order_(std::move(order)) {
    for (size_t i = 0; i < order_.size(); ++i) use({order_[i], order_[next(i)]}, 1);
  }

  std::vector<int> run() {
    // Every accepted move is better, so it ends; the limit is for very large rings.
    for (int round = 0; round < 64; ++round) {
      const bool has_moved = move_parts(), has_turned = reverse_parts();
      if (!has_moved && !has_turned) break;
    }
    return std::move(order_);
  }

 private:
  size_t next(size_t at) const { return at + 1 == order_.size() ? 0 : at + 1; }

  const std::vector<int>* shared(const Hop& hop) const {
    if (hops_.shared.empty()) return nullptr;
    return &hops_.shared[static_cast<size_t>(hop.first) * static_cast<size_t>(hops_.ranks) +
                         static_cast<size_t>(hop.second)];
  }

  /// Returns the change of the sum of squares of all uses.
  int64_t use(const Hop& hop, int by) {
    const auto* things = shared(hop);
    int64_t change = 0;
    if (things == nullptr) return 0;
    for (const int thing : *things) {
      if (uses_.size() <= static_cast<size_t>(thing)) uses_.resize(static_cast<size_t>(thing) + 1);
      int64_t& uses = uses_[static_cast<size_t>(thing)];
      change += (uses + by) * (uses + by) - uses * uses;
      uses += by;
    }
    return change;
  }

  /// Takes the exchange when the ring gets better by it: hops by level first, then sharing.
  bool accept(std::span<const Hop> removed, std::span<const Hop> added) {
    std::array<int, 16> levels{};
    size_t count = 0;
    for (const Hop& hop : added) {
      const int level = hops_.at(hop.first, hop.second);
      if (level < 0) return false;
      levels[count++] = level + 1;
    }
    for (const Hop& hop : removed) levels[count++] = -(hops_.at(hop.first, hop.second) + 1);
    const auto by_level = [](int a, int b) { return std::abs(a) > std::abs(b); };
    std::sort(levels.begin(), levels.begin() + static_cast<std::ptrdiff_t>(count), by_level);
    for (size_t i = 0; i < count;) {
      int change = 0;
      const int level = std::abs(levels[i]);
      for (; i < count && std::abs(levels[i]) == level; ++i) change += levels[i] > 0 ? 1 : -1;
      if (change > 0) return false;
      if (change < 0) {
        exchange(removed, added);
        return true;
      }
    }
    if (exchange(removed, added) < 0) return true;
    exchange(added, removed);
    return false;
  }

  int64_t exchange(std::span<const Hop> removed, std::span<const Hop> added) {
    int64_t change = 0;
    for (const Hop& hop : removed) change += use(hop, -1);
    for (const Hop& hop : added) change += use(hop, 1);
    return change;
  }

  /// Up to three ranks in a row go to another place.
  bool move_parts() {
    bool is_better = false;
    for (size_t length = 1; length <= 3; ++length) {
      for (size_t from = 0; from < order_.size(); ++from) {
        for (size_t to = 0; to + length < order_.size(); ++to) {
          is_better = try_move(from, length, to) || is_better;
        }
      }
    }
    return is_better;
  }

  /// The ring is turned so that the part comes first; then it goes behind rank `to` of the rest.
  bool try_move(size_t from, size_t length, size_t to) {
    const size_t size = order_.size(), rest = size - length;
    if (rest < 2 || to + 1 >= rest) return false;
    const auto at = [&](size_t i) { return order_[(from + i) % size]; };
    const int first = at(0), last = at(length - 1);
    const int before = at(size - 1), after = at(length);
    const int left = at(length + to), right = at(length + to + 1);
    const std::array<Hop, 3> removed{{{before, first}, {last, after}, {left, right}}};
    const std::array<Hop, 3> added{{{before, after}, {left, first}, {last, right}}};
    if (!accept(removed, added)) return false;
    std::rotate(order_.begin(), order_.begin() + static_cast<std::ptrdiff_t>(from), order_.end());
    const auto begin = order_.begin(), middle = begin + static_cast<std::ptrdiff_t>(length);
    std::rotate(begin, middle, middle + static_cast<std::ptrdiff_t>(to) + 1);
    return true;
  }

  /// A part of the ring is walked backwards. Hops within it count too, as far as their two
  /// directions differ.
  bool reverse_parts() {
    bool is_better = false;
    for (size_t i = 0; i + 2 < order_.size(); ++i) {
      for (size_t j = i + 1; j + 1 < order_.size(); ++j) {
        if (!is_same_backwards(i, j)) break;
        const int before = order_[i == 0 ? order_.size() - 1 : i - 1], after = order_[j + 1];
        const std::array<Hop, 2> removed{{{before, order_[i]}, {order_[j], after}}};
        const std::array<Hop, 2> added{{{before, order_[j]}, {order_[i], after}}};
        if (before == after || !accept(removed, added)) continue;
        const auto first = order_.begin() + static_cast<std::ptrdiff_t>(i);
        const auto last = order_.begin() + static_cast<std::ptrdiff_t>(j) + 1;
        for (auto at = first; at + 1 != last; ++at) use({*at, *(at + 1)}, -1);
        std::reverse(first, last);
        for (auto at = first; at + 1 != last; ++at) use({*at, *(at + 1)}, 1);
        is_better = true;
      }
    }
    return is_better;
  }

  /// Whether the hop that j adds to the part i .. j is of one level both ways.
  bool is_same_backwards(size_t i, size_t j) const {
    for (size_t k = i; k < j; ++k) {
      if (hops_.at(order_[k], order_[k + 1]) != hops_.at(order_[k + 1], order_[k])) return false;
    }
    return true;
  }

  const HopTable& hops_;
  std::vector<int> order_;
  std::vector<int64_t> uses_;
};

/// Takes hops, best first and near ranks before far ones, as long as no rank gets two on one side
/// and no ring closes early. Empty when the ranks do not end up in one ring.
std::vector<int> join_best_hops(const HopTable& hops) {
  const int ranks = hops.ranks;
  std::vector<Hop> all;
  for (int from = 0; from < ranks; ++from) {
    for (int to = 0; to < ranks; ++to) {
      if (from != to && hops.at(from, to) >= 0) all.emplace_back(from, to);
    }
  }
  const auto key = [&](const Hop& hop) {
    return std::make_tuple(hops.at(hop.first, hop.second), (hop.second - hop.first + ranks) % ranks,
                           hop.first);
  };
  std::sort(all.begin(), all.end(), [&](const Hop& a, const Hop& b) { return key(a) < key(b); });
  std::vector<int> next(static_cast<size_t>(ranks), -1), chain(static_cast<size_t>(ranks));
  std::vector<bool> has_before(static_cast<size_t>(ranks), false);
  std::iota(chain.begin(), chain.end(), 0);
  const auto find = [&](int rank) {
    while (chain[static_cast<size_t>(rank)] != rank) rank = chain[static_cast<size_t>(rank)];
    return rank;
  };
  int joined = 0;
  for (const auto& [from, to] : all) {
    if (next[static_cast<size_t>(from)] >= 0 || has_before[static_cast<size_t>(to)]) continue;
    const int a = find(from), b = find(to);
    if (a == b && joined + 1 < ranks) continue;
    next[static_cast<size_t>(from)] = to;
    has_before[static_cast<size_t>(to)] = true;
    chain[static_cast<size_t>(std::max(a, b))] = std::min(a, b);
    ++joined;
  }
  if (joined < ranks) return {};
  std::vector<int> order;
  for (int at = 0, i = 0; i < ranks; ++i, at = next[static_cast<size_t>(at)]) order.push_back(at);
  return order;
}

std::vector<int> in_order(const HopTable& hops) {
  std::vector<int> order(static_cast<size_t>(hops.ranks));
  std::iota(order.begin(), order.end(), 0);
  for (int r = 0; r < hops.ranks; ++r) {
    if (hops.at(r, (r + 1) % hops.ranks) < 0) return {};
  }
  return order;
}

/// Ranks that can be reached from `start` (or reach it) over hops better than `level`.
std::vector<bool> reached(const HopTable& hops, int start, int level, bool forward) {
  std::vector<bool> seen(static_cast<size_t>(hops.ranks), false);
  std::vector<int> open{start};
  seen[static_cast<size_t>(start)] = true;
  while (!open.empty()) {
    const int at = open.back();
    open.pop_back();
    for (int other = 0; other < hops.ranks; ++other) {
      const int here = forward ? hops.at(at, other) : hops.at(other, at);
      if (other == at || here < 0 || here >= level || seen[static_cast<size_t>(other)]) continue;
      seen[static_cast<size_t>(other)] = true;
      open.push_back(other);
    }
  }
  return seen;
}

/// Of the groups of ranks that reach each other over hops better than `level`: how many no such hop
/// leaves, or how many none enters, whichever is more. 0 when all ranks are one group.
int closed_groups(const HopTable& hops, int level) {
  std::vector<bool> done(static_cast<size_t>(hops.ranks), false);
  int groups = 0, not_left = 0, not_entered = 0;
  for (int rank = 0; rank < hops.ranks; ++rank) {
    if (done[static_cast<size_t>(rank)]) continue;
    ++groups;
    const auto there = reached(hops, rank, level, true), back = reached(hops, rank, level, false);
    bool is_left = false, is_entered = false;
    for (size_t r = 0; r < done.size(); ++r) {
      done[r] = done[r] || (there[r] && back[r]);
      is_left = is_left || (there[r] && !back[r]);
      is_entered = is_entered || (back[r] && !there[r]);
    }
    not_left += is_left ? 0 : 1;
    not_entered += is_entered ? 0 : 1;
  }
  return groups > 1 ? std::max(not_left, not_entered) : 0;
}

/// No ring has fewer hops at `level` or worse ones: every rank needs a hop out and one in, and so
/// does every group that good hops do not leave or enter.
int least_hops(const HopTable& hops, int level) {
  int no_way_out = 0, no_way_in = 0;
  for (int rank = 0; rank < hops.ranks; ++rank) {
    bool has_out = false, has_in = false;
    for (int other = 0; other < hops.ranks; ++other) {
      if (other == rank) continue;
      const int out = hops.at(rank, other), in = hops.at(other, rank);
      has_out = has_out || (out >= 0 && out < level);
      has_in = has_in || (in >= 0 && in < level);
    }
    no_way_out += has_out ? 0 : 1;
    no_way_in += has_in ? 0 : 1;
  }
  return std::max({no_way_out, no_way_in, closed_groups(hops, level)});
}

void add_bounds(const HopTable& hops, RingOrder& ring) {
  ring.is_best = true;
  int so_far = 0;
  for (int level = static_cast<int>(ring.hops_at_level.size()) - 1; level > 0; --level) {
    so_far += ring.hops_at_level[static_cast<size_t>(level)];
    const int least = least_hops(hops, level);
    if (least > 0 && ring.bound_worst_level < 0) ring.bound_worst_level = level;
    if (level == ring.worst_level) ring.bound_worst_hops = least;
    ring.is_best = ring.is_best && so_far == least;
  }
  ring.bound_worst_level = std::max(ring.bound_worst_level, 0);
  if (ring.worst_level == 0) ring.bound_worst_hops = ring.worst_hops;
  ring.is_sharing_least = ring.is_best && ring.sharing <= 1;
}

}  // namespace

RingOrder good_ring_order(const HopTable& hops) {
  if (hops.ranks > kMostPlacedRanks) {
    throw_usage(
        fmt::format("{} processors are more than can be put in order", hops.ranks),
        fmt::format("up to {} can; place one node of many that are alike", kMostPlacedRanks));
  }
  RingOrder best;
  for (std::vector<int> start : {join_best_hops(hops), in_order(hops)}) {
    if (start.empty()) continue;
    std::vector<int> order = Improver(hops, std::move(start)).run();
    std::rotate(order.begin(), std::find(order.begin(), order.end(), 0), order.end());
    RingOrder ring = judge_ring_order(hops, std::move(order));
    const auto is_better = [](const RingOrder& a, const RingOrder& b) {
      return std::lexicographical_compare(a.hops_at_level.rbegin(), a.hops_at_level.rend(),
                                          b.hops_at_level.rbegin(), b.hops_at_level.rend()) ||
             (a.hops_at_level == b.hops_at_level && a.sharing < b.sharing);
    };
    if (best.order.empty() || is_better(ring, best)) best = std::move(ring);
  }
  if (!best.order.empty()) add_bounds(hops, best);
  return best;
}

}  // namespace ring
