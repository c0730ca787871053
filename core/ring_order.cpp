#include "core/ring_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "core/error.h"

namespace ring {
namespace {

/// Numbers of hops by level, five bits a level, the worst level on top: the smaller number is the
/// better ring. Hops of level 0 weigh nothing: they are the rest.
using Weight = unsigned __int128;
constexpr Weight kNoWay = ~Weight{0};
constexpr int kBitsOfLevel = 5;
constexpr int64_t kMostSteps = 4'000'000;

static_assert((kMostHopLevels - 1) * kBitsOfLevel < 128 && kMostExactRanks < (1 << kBitsOfLevel));

int levels_of(const HopTable& hops) {
  int most = -1;
  for (const int level : hops.level) most = std::max(most, level);
  return most + 1;
}

class ExactSearch {
 public:
  explicit ExactSearch(const HopTable& hops)
      : hops_(hops), ranks_(hops.ranks), dropped_(std::max(0, levels_of(hops) - kMostHopLevels)) {
    fill_table();
  }

  std::vector<int> run(bool& is_sharing_least) {
    is_sharing_least = true;
    const uint32_t all = (uint32_t{1} << (ranks_ - 1)) - 1;
    best_weight_ = rest(all, 0);
    if (best_weight_ == kNoWay) return {};
    order_ = {0};
    least_sharing_ = std::numeric_limits<int>::max();
    walk(all, 0, 0);
    is_sharing_least = steps_ < kMostSteps || least_sharing_ <= 1;
    return best_order_;
  }

 private:
  Weight weight(int from, int to) const {
    const int level = hops_.at(from, to);
    if (level < 0) return kNoWay;
    const int kept = std::max(0, level - dropped_);
    return kept == 0 ? 0 : Weight{1} << (kBitsOfLevel * (kept - 1));
  }

  static Weight sum(Weight a, Weight b) { return a == kNoWay || b == kNoWay ? kNoWay : a + b; }

  /// Of the way from `at` through all of `left` (bit r - 1 is rank r) to rank 0.
  Weight& rest(uint32_t left, int at) {
    return table_[static_cast<size_t>(left) * static_cast<size_t>(ranks_) +
                  static_cast<size_t>(at)];
  }

  void fill_table() {
    const auto sets = size_t{1} << (ranks_ - 1);
    table_.assign(sets * static_cast<size_t>(ranks_), kNoWay);
    for (uint32_t left = 0; left < sets; ++left) {
      for (int at = 0; at < ranks_; ++at) {
        if (at > 0 && (left >> (at - 1) & 1) != 0) continue;
        if (left == 0) {
          rest(left, at) = weight(at, 0);
          continue;
        }
        Weight least = kNoWay;
        for (uint32_t bits = left; bits != 0; bits &= bits - 1) {
          const int next = __builtin_ctz(bits) + 1;
          const uint32_t without = left & ~(uint32_t{1} << (next - 1));
          least = std::min(least, sum(weight(at, next), rest(without, next)));
        }
        rest(left, at) = least;
      }
    }
  }

  /// All rings of the least weight in lexicographic order; keeps the first of the least sharing.
  void walk(uint32_t left, int at, Weight so_far) {
    if (least_sharing_ <= 1 || steps_ >= kMostSteps) return;
    ++steps_;
    if (left == 0) {
      take(at, 0);
      least_sharing_ = most_used();
      best_order_ = order_;
      leave(at, 0);
      return;
    }
    for (uint32_t bits = left; bits != 0; bits &= bits - 1) {
      const int next = __builtin_ctz(bits) + 1;
      const uint32_t without = left & ~(uint32_t{1} << (next - 1));
      const Weight here = sum(so_far, weight(at, next));
      if (sum(here, rest(without, next)) != best_weight_) continue;
      take(at, next);
      if (most_used() < least_sharing_) {
        order_.push_back(next);
        if (without != 0 || most_used_with(next, 0) < least_sharing_) walk(without, next, here);
        order_.pop_back();
      }
      leave(at, next);
    }
  }

  const std::vector<int>* shared(int from, int to) const {
    if (hops_.shared.empty()) return nullptr;
    return &hops_.shared[static_cast<size_t>(from) * static_cast<size_t>(ranks_) +
                         static_cast<size_t>(to)];
  }
  void take(int from, int to) { change(from, to, 1); }
  void leave(int from, int to) { change(from, to, -1); }
  void change(int from, int to, int by) {
    const auto* things = shared(from, to);
    if (things == nullptr) return;
    for (const int thing : *things) {
      if (uses_.size() <= static_cast<size_t>(thing)) uses_.resize(static_cast<size_t>(thing) + 1);
      uses_[static_cast<size_t>(thing)] += by;
    }
  }
  int most_used() const {
    int most = 1;
    for (const int uses : uses_) most = std::max(most, uses);
    return most;
  }
  int most_used_with(int from, int to) {
    take(from, to);
    const int most = most_used();
    leave(from, to);
    return most;
  }

  const HopTable& hops_;
  const int ranks_;
  const int dropped_;  ///< Levels that are taken as the best one.
  std::vector<Weight> table_;
  Weight best_weight_ = kNoWay;
  std::vector<int> order_, best_order_;
  std::vector<int> uses_;  ///< By number of the shared thing.
  int least_sharing_ = 0;
  int64_t steps_ = 0;
};

}  // namespace

RingOrder judge_ring_order(const HopTable& hops, std::vector<int> order) {
  RingOrder ring;
  ring.hops_at_level.assign(static_cast<size_t>(levels_of(hops)), 0);
  std::vector<int> uses;
  for (size_t i = 0; i < order.size() && order.size() > 1; ++i) {
    const int from = order[i], to = order[(i + 1) % order.size()];
    const int level = hops.at(from, to);
    RING_ASSERT(level >= 0);
    ++ring.hops_at_level[static_cast<size_t>(level)];
    ring.worst_level = std::max(ring.worst_level, level);
    if (hops.shared.empty()) continue;
    for (const int thing : hops.shared[static_cast<size_t>(from * hops.ranks + to)]) {
      if (uses.size() <= static_cast<size_t>(thing)) uses.resize(static_cast<size_t>(thing) + 1);
      ring.sharing = std::max(ring.sharing, ++uses[static_cast<size_t>(thing)]);
    }
  }
  if (ring.worst_level >= 0) {
    ring.worst_hops = ring.hops_at_level[static_cast<size_t>(ring.worst_level)];
  }
  ring.order = std::move(order);
  return ring;
}

RingOrder best_ring_order(const HopTable& hops) {
  RING_ASSERT(hops.ranks >= 1);
  if (hops.ranks > kMostExactRanks) return good_ring_order(hops);
  if (hops.ranks == 1) {
    RingOrder ring;
    ring.order = {0};
    ring.is_best = ring.is_sharing_least = true;
    return ring;
  }
  bool is_sharing_least = false;
  std::vector<int> order = ExactSearch(hops).run(is_sharing_least);
  RingOrder ring = judge_ring_order(hops, std::move(order));
  ring.is_best = true;
  ring.is_sharing_least = is_sharing_least;
  ring.bound_worst_level = ring.worst_level;
  ring.bound_worst_hops = ring.worst_hops;
  return ring;
}

}  // namespace ring
