// Local attention: every rank attends its own keys only. Not exact; its error is what it costs.
#include "core/strategies/kv_routing.h"
#include "core/strategy.h"

namespace ring {
namespace {

/// Nothing goes anywhere.
class NoRouting : public KvRouting {
 public:
  int steps() const override { return 0; }
  int shard_at(int rank, int64_t, int) const override { return rank; }
  int rank_at(int shard, int64_t, int) const override { return shard; }
  int gradient_track(int, int, int64_t) const override { return 0; }
  bool arrives(int, int64_t, int, int, Hop&) const override { return false; }
  void passes_on(int, int64_t, int, int, std::vector<Hop>&) const override {}
};

/// As the inner source, but known to leave out pairs.
class LocalSource : public ProgramSource {
 public:
  explicit LocalSource(std::unique_ptr<ProgramSource> inner) : inner_(std::move(inner)) {}
  int ranks() const override { return inner_->ranks(); }
  int lanes() const override { return inner_->lanes(); }
  RankStorage storage(int rank) const override {
    RankStorage storage = inner_->storage(rank);
    storage.buffers = storage.query_buffers = storage.gradient_buffers = 0;
    return storage;
  }
  std::unique_ptr<RankStream> stream(int rank) const override { return inner_->stream(rank); }
  std::string name() const override { return inner_->name(); }
  const Problem* problem() const override { return inner_->problem(); }
  bool skips_pairs() const override { return true; }

 private:
  std::unique_ptr<ProgramSource> inner_;
};

std::unique_ptr<ProgramSource> make(const Problem& problem, const Tuning& tuning,
                                    const Partition& partition) {
  return std::make_unique<LocalSource>(make_kv_program(
      problem, tuning, partition, [](const KvPlan&) { return std::make_unique<NoRouting>(); }));
}

}  // namespace

// Blockwise attention without the ring: what is left when nobody exchanges keys. Queries do not
// see the keys of other ranks, so the result is wrong, and comparisons show by how much.
Strategy local_attention_strategy() {
  return {"local",
          "nothing moves: each rank attends its own keys only, which is NOT exact attention",
          "",
          make,
          {"0", "own Q, K, V",
           "never, unless the mask keeps ranks apart: it bounds what any ring "
           "can reach, and its error shows why keys travel"}};
}

}  // namespace ring
