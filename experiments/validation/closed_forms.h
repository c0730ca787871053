// Closed forms of what has no program to simulate: gathers that end before a kernel begins, pieces
// of decoding.
#pragma once

#include "core/machine.h"
#include "experiments/validation/row_case.h"
#include "experiments/validation/stacks.h"

namespace ring {

/// All keys gathered from every rank, then one kernel over all of them; backward the keys again and
/// a reduce-scatter of their gradients. One rank: the kernel alone.
double gathered_seconds(const RowCase& row, const Machine& machine, bool is_backward,
                        const Stack& stack);

/// A piece of decoding (or of prefill with cached keys) as ring pass-Q or pass-KV between nodes.
double piece_seconds(const RowCase& row, const Machine& machine);

}  // namespace ring
