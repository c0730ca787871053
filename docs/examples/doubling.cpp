// Recursive doubling: in round k everybody exchanges all it has with the rank that differs in bit
// k.
#include <algorithm>
#include <bit>

#include "core/error.h"
#include "core/strategies/kv_routing.h"
#include "core/strategy.h"

namespace ring {
namespace {

/// Keys of shard j reach rank r by way of the ranks in which the bits of j turn into those of r,
/// the lowest first. Track k carries the exchange of bit k.
class DoublingRouting : public KvRouting {
 public:
  explicit DoublingRouting(const KvPlan& plan) : plan_(plan) {}

  int tracks() const override { return std::max(bits_of(plan_.ranks() - 1), 1); }
  int steps() const override { return plan_.ranks() - 1; }
  int shard_at(int rank, int64_t, int step) const override { return rank ^ (step + 1); }
  int rank_at(int shard, int64_t, int step) const override { return shard ^ (step + 1); }
  // Backward, every rank sends its share of the gradients straight home.
  bool gathers_home() const override { return true; }
  int gradient_track(int, int, int64_t) const override { return 0; }

  bool arrives(int shard, int64_t, int rank, int, Hop& from) const override {
    const int bit = bits_of(shard ^ rank) - 1;
    from = {rank ^ (1 << bit), bit};
    return true;
  }

  void passes_on(int shard, int64_t, int rank, int, std::vector<Hop>& to) const override {
    for (int bit = bits_of(shard ^ rank); (1 << bit) < plan_.ranks(); ++bit)
      to.push_back({rank ^ (1 << bit), bit});
  }

 private:
  static int bits_of(int number) {
    return static_cast<int>(std::bit_width(static_cast<unsigned>(number)));
  }

  const KvPlan& plan_;
};

std::unique_ptr<ProgramSource> make(const Problem& problem, const Tuning& tuning,
                                    const Partition& partition) {
  if (!std::has_single_bit(static_cast<unsigned>(partition.ranks())))
    throw_usage("strategy doubling needs a power of two of ranks", "use --ranks 2, 4, 8 or 16");
  return make_kv_program(problem, tuning, partition, [](const KvPlan& plan) {
    return std::make_unique<DoublingRouting>(plan);
  });
}

}  // namespace

Strategy doubling_strategy() {
  return {"doubling",
          "K and V spread by exchanges with ranks 1, 2, 4, ... places away",
          "",
          make,
          {"2^k S/P 2 Hkv D b in round k", "own Q, K, V; depth KV buffers per round",
           "log2 P start-ups count for more than what distant links carry"}};
}

}  // namespace ring
