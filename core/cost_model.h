// Cost model: how long the ops of a rank take on one processor that is alone.
#pragma once

#include "core/machine.h"
#include "core/problem.h"
#include "core/ring_program.h"

namespace ring {

/// Bytes of attention state (fp32 u, m, l of the rows and heads of the op, all batches) that a
/// merge reads (two states) and writes (one).
Bytes merge_bytes(const Problem& problem, const Op& op);

/// Bytes that a finalize reads (the state) and writes (output in the model dtype, lse in fp32, or
/// the state again when it becomes a partial result).
Bytes finalize_bytes(const Problem& problem, const Op& op);

/// Seconds of `bytes`: start + bytes / rate. Throws Error(kUsage) naming `what` when the rate is
/// unknown (not positive) and there are bytes to move.
double byte_seconds(const ByteCost& cost, Bytes bytes, const char* what);

/// Seconds of any op but send and receive alone on its processor; 0 for sends
/// and receives. `problem` may be null for programs of compute, copy, send and receive only.
/// Throws Error(kUsage) when the machine does not say what the op costs.
/// `sharers` ranks take turns on the processor and share its cache.
double op_seconds(const Machine& machine, const Problem* problem, const Op& op, int sharers = 1);

/// The op as a GPU kernel sees it.
TileWork tile_work(const Problem& problem, const Op& op);

}  // namespace ring
