// Hamiltonian multi-ring: each KV shard is cut into parts that walk different rings at once.
#pragma once

#include "core/strategy.h"

namespace ring {

/// The cycles step by each number coprime with the ring size, so they share no link of an
/// all-to-all topology: phi(P) cycles, for example 4 of the 7 possible at 8 ranks.
/// "multi-ring:C" takes the first C of them. Message m walks cycle m modulo C; give at least C
/// messages per shard (--blocks-per-message), or some cycles stay idle.
Strategy multi_ring_strategy();

}  // namespace ring
