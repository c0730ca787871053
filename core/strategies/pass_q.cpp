// Ring pass-Q: keys stay, queries walk round the ring, an all-to-all brings the results home.
#include "core/strategies/kv_routing.h"
#include "core/strategies/query_ring.h"
#include "core/strategy.h"

namespace ring {
namespace {

std::unique_ptr<ProgramSource> make(const Problem& problem, const Tuning& tuning,
                                    const Partition& partition) {
  return make_query_ring(problem, tuning, partition, ReturnOfPartials::kAtTheEnd);
}

}  // namespace

// Wins over pass-KV when queries are fewer bytes than K and V: many KV heads, or few new tokens
// over a long cache. Source: Context Parallelism for Scalable Million-Token Inference,
// arXiv 2411.01783.
Strategy pass_q_strategy() {
  return {"pass-q",
          "Q blocks walk round the ring, K and V stay; partial results come home in one all-to-all",
          "",
          make,
          {"per hop S/P Hq Dqk b; then per other rank S/P Hq (Dv + 1) 4",
           "own Q, K, V; depth Q buffers; P - 1 partial results",
           "few queries over many keys: Q is smaller than K and V"}};
}

}  // namespace ring
