// The ops of the backward pass on the memory of one rank.
#pragma once

#include "core/ring_program.h"
#include "kernels/cpu/attend_backward.h"
#include "kernels/executor_storage.h"

namespace ring {

/// Sizes of the block of a backward op.
cpu::AttendShape backward_shape(const Problem& problem, const Op& op);

/// Adds the block of the op to dQ, dK and dV. `spans` as for the kernel.
void run_backward(RankMemory& memory, const Op& op, const cpu::KeySpan* spans,
                  cpu::Workspace& workspace);

/// Writes (lse, delta) of the own rows; sets all gradients of the rank to zero when the op says so.
void run_delta(RankMemory& memory, const Op& op);

/// Adds one gradient buffer to another or to the own gradients.
void run_add(RankMemory& memory, const Op& op);

}  // namespace ring
