// Rows of a shard on their way: what every op that moves query rows or their results has in common.
#pragma once

#include "core/payload.h"
#include "core/ring_program.h"
#include "core/strategies/shard_messages.h"

namespace ring {

/// An op on `rows` of a shard for these query heads, with the bytes that its payload has.
inline Op rows_op(const Problem& problem, OpKind kind, Payload payload, int shard, KeySlice rows,
                  HeadRange heads) {
  Op op;
  op.kind = kind;
  op.payload = payload;
  op.q_shard = shard;
  op.q_begin = rows.begin;
  op.q_end = rows.end;
  op.head_begin = static_cast<int32_t>(heads.begin);
  op.head_end = static_cast<int32_t>(heads.end);
  op.bytes = payload_bytes(problem, payload, heads, rows.end - rows.begin);
  return op;
}

}  // namespace ring
