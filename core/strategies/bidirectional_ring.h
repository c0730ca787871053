// Bidirectional ring: queries walk one way, each partial result goes home the other way at once.
#pragma once

#include "core/strategy.h"

namespace ring {

/// As pass-q, but answers travel while the ring still turns, so both directions of a full-duplex
/// link are in use. Source: TokenRing, arXiv 2412.20501.
Strategy bidirectional_ring_strategy();

}  // namespace ring
