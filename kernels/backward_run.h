// The ops of the backward pass on the memory of one rank.
#pragma once

#include <span>

#include "core/ring_program.h"
#include "kernels/cpu/attend_backward.h"
#include "kernels/executor_storage.h"

namespace ring {

/// Sizes of the block of a backward op.
cpu::AttendShape backward_shape(const Problem& problem, const Op& op);

/// Rows that are copied or added from one place to another, following each other at both.
struct RowRun {
  int64_t source = 0, target = 0, count = 0;
};

/// Adds the block of the op to dQ, dK and dV. `spans` as for the kernel; `scores` for the naive
/// method alone.
void run_backward(RankMemory& memory, const Op& op, const cpu::KeySpan* spans,
                  cpu::Workspace& workspace, float* scores);

/// Writes (lse, delta) of the rows; sets the gradients that the op names to zero when it says so.
void run_delta(RankMemory& memory, const Op& op);

/// Adds one gradient buffer to another or to the own gradients.
void run_add(RankMemory& memory, const Op& op, std::span<const RowRun> runs);

}  // namespace ring
