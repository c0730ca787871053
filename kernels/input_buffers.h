// Which buffers of a rank hold Q, K and V from the start.
#pragma once

#include "core/ring_program.h"

namespace ring {

/// Calls `fill(tokens, payload, buffer)` for each: those of the own shard, then the shaped buffers
/// that the program wants filled, with keys and values or with queries.
template <typename Fill>
void for_each_input(const RingProgram& program, int rank, Fill fill) {
  const RankStorage& storage = program.rank_programs[static_cast<size_t>(rank)].storage;
  if (storage.has_home_inputs) {
    const TokenRanges& tokens = program.partition.shard(rank);
    fill(tokens, Payload::kQuery, kHomeBuffer);
    fill(tokens, Payload::kKeyValue, kHomeBuffer);
  }
  for (size_t i = 0; i < storage.shaped_buffers.size(); ++i) {
    const BufferShape& shape = storage.shaped_buffers[i];
    const bool holds_inputs = shape.payload == Payload::kKeyValue ||
                              shape.payload == Payload::kQuery ||
                              shape.payload == Payload::kQuerySide;
    if (shape.filled_with < 0 || !holds_inputs) continue;
    fill(program.tokens_of(shape.filled_with), shape.payload,
         storage.buffers + static_cast<int32_t>(i));
  }
}

}  // namespace ring
