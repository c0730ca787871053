// The forward pass whose output and lse a program without one starts from.
#pragma once

#include "core/ring_program.h"

namespace ring {

/// The same ring with a forward pass alone, once: the shards of both programs are the same.
RingProgram forward_part_of(const RingProgram& program);

/// Calls `take(tokens, buffer)` for what needs output and lse of the forward pass: the own shard,
/// then the shaped buffers that the program wants filled with them.
template <typename Take>
void for_each_forward_output(const RingProgram& program, int rank, Take take) {
  take(program.partition.shard(rank), kHomeBuffer);
  const RankStorage& storage = program.rank_programs[static_cast<size_t>(rank)].storage;
  for (size_t i = 0; i < storage.shaped_buffers.size(); ++i) {
    const BufferShape& shape = storage.shaped_buffers[i];
    if (shape.payload != Payload::kOutput || shape.filled_with < 0) continue;
    take(program.tokens_of(shape.filled_with), storage.buffers + static_cast<int32_t>(i));
  }
}

}  // namespace ring
