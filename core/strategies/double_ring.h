// Double ring: short hops inside a group of ranks, long hops between groups, both at once.
#pragma once

#include "core/strategy.h"

namespace ring {

/// "double-ring:I" makes groups of I neighbouring ranks, which must divide the number of ranks. In
/// outer round o every rank holds the keys of its place in the group o places before its own; they
/// walk the inner ring of the group, while the same keys are already on their way to the next
/// group (outer track). Each rank sends P - 1 messages, of which P / I - 1 cross groups.
Strategy double_ring_strategy();

}  // namespace ring
