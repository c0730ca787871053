// Closed forms of what has no program to simulate: all-to-alls, gathers, backward steps, decoding.
#pragma once

#include "core/machine.h"
#include "core/ring_program.h"
#include "experiments/validation/row_case.h"
#include "experiments/validation/stacks.h"

namespace ring {

/// Q, K and V to head shares and the output back (or their gradients): each GPU exchanges
/// (u - 1) / u of its tensors with its group over the links between two of its members, and lays
/// them out before and after.
double all_to_all_seconds(const RowCase& row, const Stack& stack, const Machine& machine);

/// All keys gathered from every rank, then one kernel over all of them; backward the keys again and
/// a reduce-scatter of their gradients. One rank: the kernel alone.
double gathered_seconds(const RowCase& row, const Machine& machine, bool is_backward,
                        const Stack& stack);

/// The backward pass in the steps of the forward ring: each attend becomes the backward kernel with
/// the sums of its gradients, slowed while its message runs, and each message carries dK and dV
/// too. Throws Error(kUsage) for machines without backward tiles.
RingProgram backward_program(const RingProgram& forward, const RowCase& row, const Stack& stack,
                             const Machine& machine);
/// dK and dV make one hop more than K and V, home to their owner, with nothing to hide behind.
double last_gradient_hop_seconds(const RingProgram& forward, const RowCase& row, const Stack& stack,
                                 const Machine& machine);

/// A piece of decoding (or of prefill with cached keys) as ring pass-Q or pass-KV between nodes.
double piece_seconds(const RowCase& row, const Machine& machine);

}  // namespace ring
