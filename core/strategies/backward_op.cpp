#include "core/strategies/backward_op.h"

namespace ring {

Op delta_op(const Problem& problem, int shard, Tokens tokens, bool resets) {
  Op op;
  op.kind = OpKind::kDelta;
  op.q_shard = shard;
  op.q_end = tokens;
  op.head_end = static_cast<int32_t>(problem.heads);
  op.state = kHomeBuffer;
  op.starts_state = resets;
  // O, dO and lse are read, lse and delta written.
  op.bytes = problem.batch * problem.heads * tokens *
             (2 * problem.head_dim_v * size_bytes(problem.dtype) + 12);
  if (resets) op.bytes += problem.query_gradient_bytes(tokens) + problem.key_gradient_bytes(tokens);
  return op;
}

Op backward_op(const Problem& problem, const Partition& partition, const ShardSlice& rows,
               const ShardSlice& keys) {
  Op op;
  op.kind = OpKind::kBackward;
  op.buffer_begin = keys.part.begin;
  op.kv_shard = keys.shard;
  op.kv_begin = keys.part.begin;
  op.kv_end = keys.part.end;
  op.q_shard = rows.shard;
  op.q_begin = rows.part.begin;
  op.q_end = rows.part.end;
  op.head_end = static_cast<int32_t>(problem.heads);
  op.state = kHomeBuffer;
  const BlockCounts counts =
      problem.mask.count_block(slice(partition.shard(rows.shard), op.q_begin, op.q_end),
                               slice(partition.shard(keys.shard), op.kv_begin, op.kv_end));
  op.visible_pairs = counts.visible_pairs;
  op.active_rows = counts.active_rows;
  op.edge_rows = counts.edge_rows;
  op.flops = problem.backward_flops(counts.visible_pairs);
  return op;
}

void append_optimizer_gap(const Tuning& tuning, OpWriter& writer, OpBatch& batch) {
  if (tuning.optimizer_gap_ps == 0) return;
  Op op;
  op.kind = OpKind::kCompute;
  op.fixed_ps = tuning.optimizer_gap_ps;
  op.micro_step = tuning.accumulation_steps;
  writer.append(op, {}, batch);
}

}  // namespace ring
