// The ops of a backward pass with their exact counts, wherever their operands lie.
#pragma once

#include "core/ring_program.h"
#include "core/strategies/shard_messages.h"

namespace ring {

/// A slice of the local order of a shard.
struct ShardSlice {
  int shard = 0;
  KeySlice part;
};

/// The op that prepares the backward pass of all `tokens` rows of a shard, and sets the gradients
/// to zero when `resets`.
Op delta_op(const Problem& problem, int shard, Tokens tokens, bool resets);

/// The op that adds the pairs of rows and keys to the gradients at home; all operands lie at home.
Op backward_op(const Problem& problem, const Partition& partition, const ShardSlice& rows,
               const ShardSlice& keys);

/// The op after `steps` repetitions in which the optimizer works; nothing when it takes no time.
void append_optimizer_gap(const Tuning& tuning, OpWriter& writer, OpBatch& batch);

}  // namespace ring
