// Double ring: short hops inside a group of ranks, long hops between groups, both at once.
#include <fmt/format.h>

#include "core/error.h"
#include "core/strategies/kv_routing.h"
#include "core/strategy.h"

namespace ring {
namespace {

constexpr int kInnerTrack = 0, kOuterTrack = 1;

/// Step o * I + i (counted with the own message as step -1): the keys that were i places before in
/// the inner ring of the group o places before.
class DoubleRouting : public KvRouting {
 public:
  DoubleRouting(const KvPlan& plan, int inner) : plan_(plan), inner_(inner) {}

  int tracks() const override { return 2; }
  int steps() const override { return plan_.ranks() - 1; }

  int shard_at(int rank, int64_t, int step) const override {
    const Place place = place_of(step);
    return member(group_of(rank) - place.outer, rank % inner_ - place.inner);
  }

  int rank_at(int shard, int64_t, int step) const override {
    const Place place = place_of(step);
    return member(group_of(shard) + place.outer, shard % inner_ + place.inner);
  }

  int gradient_track(int from, int to, int64_t) const override {
    return group_of(from) == group_of(to) ? kInnerTrack : kOuterTrack;
  }

  bool arrives(int shard, int64_t m, int rank, int step, Hop& from) const override {
    const Place place = place_of(step);
    if (place.inner > 0) {
      from = {member(group_of(rank), rank % inner_ - 1), kInnerTrack};
      return inner_is_needed(shard, m, rank, place.inner);
    }
    from = {member(group_of(rank) - 1, rank % inner_), kOuterTrack};
    return outer_is_needed(shard, m, place.outer);
  }

  void passes_on(int shard, int64_t m, int rank, int step, std::vector<Hop>& to) const override {
    const Place place = place_of(step);
    // The long hop starts before the inner ring does.
    if (place.inner == 0 && outer_is_needed(shard, m, place.outer + 1)) {
      to.push_back({member(group_of(rank) + 1, rank % inner_), kOuterTrack});
    }
    const int next = member(group_of(rank), rank % inner_ + 1);
    if (inner_is_needed(shard, m, next, place.inner + 1)) to.push_back({next, kInnerTrack});
  }

 private:
  struct Place {
    int outer, inner;
  };
  Place place_of(int step) const { return {(step + 1) / inner_, (step + 1) % inner_}; }
  int groups() const { return plan_.ranks() / inner_; }
  int group_of(int rank) const { return rank / inner_; }
  int member(int group, int place) const {
    const int g = (group % groups() + groups()) % groups();
    return g * inner_ + (place % inner_ + inner_) % inner_;
  }

  /// Whether the message, on its `hop`-th inner hop to `rank`, is needed there or further on.
  bool inner_is_needed(int shard, int64_t m, int rank, int hop) const {
    for (; hop < inner_; ++hop) {
      if (plan_.is_needed(shard, m, rank)) return true;
      rank = member(group_of(rank), rank % inner_ + 1);
    }
    return false;
  }

  /// Whether any group from the `hop`-th after the owner's on needs the message.
  bool outer_is_needed(int shard, int64_t m, int hop) const {
    for (; hop < groups(); ++hop) {
      for (int place = 0; place < inner_; ++place) {
        if (plan_.is_needed(shard, m, member(group_of(shard) + hop, place))) return true;
      }
    }
    return false;
  }

  const KvPlan& plan_;
  const int inner_;
};

std::unique_ptr<ProgramSource> make(const Problem& problem, const Tuning& tuning,
                                    const Partition& partition) {
  const int64_t inner = strategy_parameter(tuning, 0);
  if (tuning.strategy.find(':') == std::string::npos) {
    throw_usage("strategy double-ring: how many ranks an inner ring has is not given",
                "write double-ring:I with I ranks per group, for example the GPUs of one node");
  }
  if (inner < 1 || partition.ranks() % inner != 0) {
    throw_usage(fmt::format("strategy '{}' over {} ranks: the inner ring must be a divisor of the "
                            "number of ranks",
                            tuning.strategy, partition.ranks()),
                "write double-ring:I with I ranks per group, for example the GPUs of one node");
  }
  return make_kv_program(problem, tuning, partition, [inner](const KvPlan& plan) {
    return std::make_unique<DoubleRouting>(plan, static_cast<int>(inner));
  });
}

}  // namespace

// "double-ring:I" makes groups of I neighbouring ranks, which must divide the number of ranks. In
// outer round o every rank holds the keys of its place in the group o places before its own; they
// walk the inner ring of the group, while the same keys are already on their way to the next
// group (outer track). Each rank sends P - 1 messages, of which P / I - 1 cross groups.
Strategy double_ring_strategy() {
  return {"double-ring",
          "K and V walk inner rings on fast links while the next outer hop is on its way",
          "ranks of an inner ring",
          make,
          {"P - 1 messages of 2 S/P Hkv D b, of which P/I - 1 leave the group",
           "own Q, K, V; depth KV messages for each of two tracks",
           "groups with fast links inside and slow ones between them"}};
}

}  // namespace ring
