// Tensor parallelism by heads: what people run who do not shard the sequence.
#pragma once

#include "core/strategy.h"

namespace ring {

/// Each rank has Q, K and V of all tokens for its heads, as projections split by heads leave them,
/// and the outputs go to the ranks that hold the tokens, as a reduce-scatter does. The gathering of
/// activations before the projections is not attention's and is not counted.
Strategy tensor_parallel_strategy();

}  // namespace ring
