// Ring pass-KV: queries stay, K and V blocks walk round the ring.
#include "core/strategies/cycle_routing.h"
#include "core/strategy.h"

namespace ring {
namespace {

std::unique_ptr<ProgramSource> make(const Problem& problem, const Tuning& tuning,
                                    const Partition& partition) {
  return make_kv_program(problem, tuning, partition, [](const KvPlan& plan) {
    return std::make_unique<CycleRouting>(plan, std::vector<int>{1});
  });
}

}  // namespace

// Each shard is cut into messages of `blocks_per_message` blocks. Message m of every shard walks
// the whole ring before message m + 1 starts, so a rank holds `pipeline_depth` messages at most.
// A message goes only as far as some rank on its way still needs it under the mask.
// Bytes per rank and hop: one message of K and V in the model dtype.
Strategy pass_kv_strategy() {
  return {"pass-kv",
          "K and V blocks walk round the ring, queries stay",
          "",
          make,
          {"2 S/P Hkv D b per hop, P - 1 hops", "own Q, K, V; depth KV messages",
           "every token asks and query heads share KV heads: the plain ring to beat"}};
}

}  // namespace ring
