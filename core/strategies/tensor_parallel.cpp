// Tensor parallelism by heads: what people run who do not shard the sequence.
#include "core/strategies/head_split.h"
#include "core/strategy.h"

namespace ring {
namespace {

std::unique_ptr<ProgramSource> make(const Problem& problem, const Tuning& tuning,
                                    const Partition& partition) {
  return make_head_mesh(problem, tuning, partition, {partition.ranks(), HeadRule::kUneven, true});
}

}  // namespace

// Each rank has Q, K and V of all tokens for its heads, as projections split by heads leave them,
// and the outputs go to the ranks that hold the tokens, as a reduce-scatter does. The gathering of
// activations before the projections is not attention's and is not counted.
Strategy tensor_parallel_strategy() {
  return {"tensor-parallel",
          "each rank has all tokens of its heads from the start; only outputs move",
          "",
          make,
          {"(P - 1)/P of S/P Hq Dv b at the end", "Q, K, V and O of all tokens for Hq/P heads",
           "short sequences on one node: it does not shard activations outside attention"}};
}

}  // namespace ring
