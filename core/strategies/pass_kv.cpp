#include "core/strategies/pass_kv.h"

#include "core/strategies/cycle_routing.h"

namespace ring {
namespace {

std::unique_ptr<ProgramSource> make(const Problem& problem, const Tuning& tuning,
                                    const Partition& partition) {
  return make_kv_program(problem, tuning, partition, [](const KvPlan& plan) {
    return std::make_unique<CycleRouting>(plan, std::vector<int>{1});
  });
}

}  // namespace

Strategy pass_kv_strategy() {
  return {"pass-kv",
          "K and V blocks walk round the ring, queries stay",
          "",
          make,
          {"2 S/P Hkv D b per hop, P - 1 hops", "own Q, K, V; depth KV messages",
           "every token asks and query heads share KV heads: the plain ring to beat"}};
}

}  // namespace ring
