// Bidirectional ring: queries walk one way, each partial result goes home the other way at once.
#include "core/strategies/kv_routing.h"
#include "core/strategies/query_ring.h"
#include "core/strategy.h"

namespace ring {
namespace {

std::unique_ptr<ProgramSource> make(const Problem& problem, const Tuning& tuning,
                                    const Partition& partition) {
  return make_query_ring(problem, tuning, partition, ReturnOfPartials::kAtOnce);
}

}  // namespace

// As pass-q, but answers travel while the ring still turns, so both directions of a full-duplex
// link are in use. Source: TokenRing, arXiv 2412.20501.
Strategy bidirectional_ring_strategy() {
  return {"bidirectional-ring",
          "Q blocks walk one way, partial results go home the other way meanwhile",
          "",
          make,
          {"per step S/P Hq Dqk b one way and S/P Hq (Dv + 1) 4 the other",
           "own Q, K, V; depth Q buffers and 2 depth partial results",
           "full-duplex links that would idle in one direction, as many KV heads as query heads"}};
}

}  // namespace ring
