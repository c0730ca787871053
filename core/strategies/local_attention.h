// Local attention: every rank attends its own keys only. Not exact; its error is what it costs.
#pragma once

#include "core/strategy.h"

namespace ring {

/// Blockwise attention without the ring: what is left when nobody exchanges keys. Queries do not
/// see the keys of other ranks, so the result is wrong, and comparisons show by how much.
Strategy local_attention_strategy();

}  // namespace ring
