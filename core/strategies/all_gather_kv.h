// All-gather KV: every rank sends its keys straight to every rank that needs them.
#pragma once

#include "core/strategy.h"

namespace ring {

/// At step k rank r receives from rank r - 1 - k and nothing is forwarded. With a depth of P - 1
/// the whole sequence is gathered; less depth holds less at once. Bytes sent per rank: its shard
/// times the number of ranks that need it; the same total as the ring, over longer ways. Backward,
/// every rank sends its share of a shard's gradients straight home: a reduce-scatter.
Strategy all_gather_kv_strategy();

}  // namespace ring
