// The programs of published rows, and the machine as the software of a row uses it.
#pragma once

#include "core/machine.h"
#include "core/ring_program.h"
#include "experiments/validation/row_case.h"
#include "experiments/validation/stacks.h"

namespace ring {

/// The ring of a row, in which each group of `ulysses` GPUs takes part as one with its share of the
/// heads. Gradients travel as wide as the stack sends them.
RingProgram ring_program(const RowCase& row, const Stack& stack, Pass pass);

/// The forward pass with its all-to-alls, on all GPUs. Groups whose shards would not be shards of
/// the ring (striped ones) are cut as in a zigzag ring. Throws Error(kUsage) when KV heads can
/// neither be dealt nor copied evenly.
RingProgram exchange_program(const RowCase& row);
/// Leaves nothing of a program but what groups of `ulysses` ranks exchange among themselves:
/// computation takes no time, and messages between groups have no bytes.
void keep_exchange_only(int ulysses, RingProgram& program);

/// Places the ranks of ring_program: one GPU of each group.
void place_ring(const RowCase& row, Machine& machine);
/// Places the ranks of exchange_program: neighbours share heads, or GPUs of different nodes do.
void place_groups(const RowCase& row, Machine& machine);
/// What the stack takes to lay out what goes through the all-to-alls of one pass, before and after:
/// a few kernels with nothing beside them.
double layout_seconds(const RowCase& row, const Stack& stack, const Machine& machine);

}  // namespace ring
