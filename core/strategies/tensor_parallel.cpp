#include "core/strategies/tensor_parallel.h"

#include "core/strategies/head_split.h"

namespace ring {
namespace {

std::unique_ptr<ProgramSource> make(const Problem& problem, const Tuning& tuning,
                                    const Partition& partition) {
  return make_head_mesh(problem, tuning, partition, {partition.ranks(), HeadRule::kUneven, true});
}

}  // namespace

Strategy tensor_parallel_strategy() {
  return {"tensor-parallel",
          "each rank has all tokens of its heads from the start; only outputs move",
          "",
          make,
          {"(P - 1)/P of S/P Hq Dv b at the end", "Q, K, V and O of all tokens for Hq/P heads",
           "short sequences on one node: it does not shard activations outside attention"}};
}

}  // namespace ring
