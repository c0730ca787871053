// All-gather KV: every rank sends its keys straight to every rank that needs them.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>

#include "core/error.h"
#include "core/strategies/kv_routing.h"
#include "core/strategy.h"

namespace ring {
namespace {

class StarRouting : public KvRouting {
 public:
  explicit StarRouting(const KvPlan& plan) : plan_(plan) {}

  int steps() const override { return plan_.ranks() - 1; }
  int shard_at(int rank, int64_t, int step) const override {
    return (rank - 1 - step + plan_.ranks()) % plan_.ranks();
  }
  int rank_at(int shard, int64_t, int step) const override {
    return (shard + 1 + step) % plan_.ranks();
  }
  bool gathers_home() const override { return true; }
  int gradient_track(int, int, int64_t) const override { return 0; }
  bool arrives(int shard, int64_t m, int rank, int, Hop& from) const override {
    from = {shard, 0};
    return plan_.is_needed(shard, m, rank);
  }
  void passes_on(int shard, int64_t m, int rank, int step, std::vector<Hop>& to) const override {
    if (step >= 0) return;
    for (int k = 0; k < steps(); ++k) {
      const int other = (rank + 1 + k) % plan_.ranks();
      if (plan_.is_needed(shard, m, other)) to.push_back({other, 0});
    }
  }

 private:
  const KvPlan& plan_;
};

/// 0: the heads are not grouped.
int head_groups_of(const Problem& problem, const Tuning& tuning) {
  if (tuning.strategy.find(':') == std::string::npos) return 0;
  const int64_t groups = strategy_parameter(tuning, 0), heads = problem.kv_heads;
  if (groups < 1 || heads % groups != 0) {
    std::vector<int64_t> legal;
    for (int64_t count = 1; count <= heads; ++count) {
      if (heads % count == 0) legal.push_back(count);
    }
    throw_usage(fmt::format("strategy '{}': {} KV heads do not make {} equal groups",
                            tuning.strategy, heads, groups),
                fmt::format("legal numbers of groups: {}", fmt::join(legal, ", ")));
  }
  if (tuning.backward == BackwardMoves::kQueries) {
    throw_usage(fmt::format("strategy '{}' gathers KV heads in groups, forward and backward; the "
                            "query side does not travel",
                            tuning.strategy),
                "leave out --backward q, or gather all heads at once");
  }
  return static_cast<int>(groups);
}

std::unique_ptr<ProgramSource> make(const Problem& problem, const Tuning& tuning,
                                    const Partition& partition) {
  const auto star = [](const KvPlan& plan) { return std::make_unique<StarRouting>(plan); };
  return make_kv_program(problem, tuning, partition, star, nullptr,
                         head_groups_of(problem, tuning));
}

/// About four groups, of which two are half of the heads.
std::string grouped(const Problem& problem) {
  int64_t best = 1;
  for (int64_t groups = 2; groups <= problem.kv_heads; ++groups) {
    const bool is_nearer = best == 1 || std::abs(groups - 4) < std::abs(best - 4);
    if (problem.kv_heads % groups == 0 && is_nearer) best = groups;
  }
  return best == 1 ? std::string() : fmt::format("all-gather-kv:{}", best);
}

}  // namespace

// At step k rank r receives from rank r - 1 - k and nothing is forwarded. With a depth of P - 1
// the whole sequence is gathered; less depth holds less at once. Bytes sent per rank: its shard
// times the number of ranks that need it; the same total as the ring, over longer ways. Backward,
// every rank sends its share of a shard's gradients straight home: a reduce-scatter.
//
// "all-gather-kv:G" gathers the KV heads in G groups: while one is computed the next is gathered.
// A rank then holds all keys that it needs of `depth` groups, two unless the tuning says otherwise,
// and of as many its own ones packed for sending.
Strategy all_gather_kv_strategy() {
  return {
      "all-gather-kv",
      "every rank sends its K and V straight to every rank that needs them",
      "number of KV-head groups, gathered one after the other",
      make,
      {"2 S/P Hkv D b to each rank that needs it, nothing is forwarded; in G parts with groups",
       "own Q, K, V; depth KV messages, or with groups K and V of S tokens, depth/G of the heads",
       "few ranks on a switch, or masks under which few ranks need a shard"},
      grouped};
}

}  // namespace ring
