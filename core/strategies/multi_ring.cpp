// Hamiltonian multi-ring: each KV shard is cut into parts that walk different rings at once.
#include <fmt/format.h>

#include <numeric>

#include "core/error.h"
#include "core/strategies/cycle_routing.h"
#include "core/strategy.h"

namespace ring {
namespace {

std::vector<int> coprime_strides(int ranks) {
  if (ranks == 1) return {1};
  std::vector<int> strides;
  for (int stride = 1; stride < ranks; ++stride) {
    if (std::gcd(stride, ranks) == 1) strides.push_back(stride);
  }
  return strides;
}

std::unique_ptr<ProgramSource> make(const Problem& problem, const Tuning& tuning,
                                    const Partition& partition) {
  std::vector<int> strides = coprime_strides(partition.ranks());
  const auto most = static_cast<int64_t>(strides.size());
  const int64_t cycles = strategy_parameter(tuning, most);
  if (cycles < 1 || cycles > most) {
    throw_usage(fmt::format("strategy '{}': {} ranks have {} cycles of this kind", tuning.strategy,
                            partition.ranks(), most),
                fmt::format("allowed: multi-ring:1 .. multi-ring:{}", most));
  }
  strides.resize(static_cast<size_t>(cycles));
  return make_kv_program(problem, tuning, partition, [&strides](const KvPlan& plan) {
    return std::make_unique<CycleRouting>(plan, strides);
  });
}

}  // namespace

// The cycles step by each number coprime with the ring size, so they share no link of an
// all-to-all topology: phi(P) cycles, for example 4 of the 7 possible at 8 ranks.
// "multi-ring:C" takes the first C of them. Message m walks cycle m modulo C; give at least C
// messages per shard (--blocks-per-message), or some cycles stay idle.
Strategy multi_ring_strategy() {
  return {"multi-ring",
          "parts of each KV shard walk several link-disjoint rings at once",
          "number of cycles",
          make,
          {"as pass-kv, over C links at once", "own Q, K, V; depth KV messages for each ring",
           "a switch joins all ranks and one link alone would be too slow"}};
}

}  // namespace ring
