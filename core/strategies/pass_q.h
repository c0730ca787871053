// Ring pass-Q: keys stay, queries walk round the ring, an all-to-all brings the results home.
#pragma once

#include "core/strategy.h"

namespace ring {

/// Wins over pass-KV when queries are fewer bytes than K and V: many KV heads, or few new tokens
/// over a long cache. Source: Context Parallelism for Scalable Million-Token Inference,
/// arXiv 2411.01783.
Strategy pass_q_strategy();

}  // namespace ring
