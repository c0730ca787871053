// Ring pass-KV: queries stay, K and V blocks walk round the ring.
#pragma once

#include "core/strategy.h"

namespace ring {

/// Each shard is cut into messages of `blocks_per_message` blocks. Message m of every shard walks
/// the whole ring before message m + 1 starts, so a rank holds `pipeline_depth` messages at most.
/// A message goes only as far as some rank on its way still needs it under the mask.
/// Bytes per rank and hop: one message of K and V in the model dtype.
Strategy pass_kv_strategy();

}  // namespace ring
