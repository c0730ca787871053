// All-gather KV: every rank sends its keys straight to every rank that needs them.
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

std::unique_ptr<ProgramSource> make(const Problem& problem, const Tuning& tuning,
                                    const Partition& partition) {
  return make_kv_program(problem, tuning, partition,
                         [](const KvPlan& plan) { return std::make_unique<StarRouting>(plan); });
}

}  // namespace

// At step k rank r receives from rank r - 1 - k and nothing is forwarded. With a depth of P - 1
// the whole sequence is gathered; less depth holds less at once. Bytes sent per rank: its shard
// times the number of ranks that need it; the same total as the ring, over longer ways. Backward,
// every rank sends its share of a shard's gradients straight home: a reduce-scatter.
Strategy all_gather_kv_strategy() {
  return {"all-gather-kv",
          "every rank sends its K and V straight to every rank that needs them",
          "",
          make,
          {"2 S/P Hkv D b to each rank that needs it, nothing is forwarded",
           "own Q, K, V; depth KV messages, the whole sequence at depth P - 1",
           "few ranks on a switch, or masks under which few ranks need a shard"}};
}

}  // namespace ring
