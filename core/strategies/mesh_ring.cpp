// The ring over groups of a MeshStream: the ops of a smaller program, in terms of the mesh.
#include <algorithm>

#include "core/strategies/backward_op.h"
#include "core/strategies/mesh_stream.h"

namespace ring {

bool MeshStream::ring_ops(OpBatch& batch) {
  OpBatch inner;
  if (!ring_->next(inner)) return false;
  for (const Op& op : inner.ops) {
    Readers deps;
    for (int32_t i = 0; i < op.dep_count; ++i) {
      LanePoint dep = inner.deps[static_cast<size_t>(op.dep_begin + i)];
      dep.position += before_ring_[static_cast<size_t>(dep.lane)];
      deps.push_back(dep);
    }
    const Op here = mapped(op);
    // Within the phase the ring keeps its own order.
    bool meets_first = false;
    for (const BufferUse& use : buffer_uses(here))
      meets_first = met_.insert({use.buffer, here.lane, use.writes}).second || meets_first;
    if (meets_first) order_.wait(here, deps);
    append_ordered(here, deps, batch);
  }
  return true;
}

Op MeshStream::mapped(Op op) const {
  const HeadRange heads = plan_.heads_of(rank_);
  const int ranks = plan_.partition.ranks();
  const bool is_transfer = op.kind == OpKind::kSend || op.kind == OpKind::kReceive;
  const bool has_all_heads = op.head_end == 0;
  if (op.kv_shard >= 0) op.kv_shard += ranks;
  if (op.q_shard >= 0) op.q_shard += ranks;
  op.head_end = static_cast<int32_t>(has_all_heads ? heads.end : heads.begin + op.head_end);
  op.head_begin = static_cast<int32_t>(heads.begin + op.head_begin);
  if (is_transfer) {
    op.peer = op.peer * plan_.mesh.inner + plan_.member_of(rank_);
    op.message += ring_messages() * (2 * micro_step_ + (is_backward_ ? 1 : 0));
  }
  name_buffers(op);
  return op;
}

int64_t MeshStream::ring_messages() const {
  const int64_t most = 4 * plan_.groups();
  const Tokens block = std::min<Tokens>(plan_.tuning.block_tokens, plan_.problem.seq_len());
  return most * ((plan_.problem.seq_len() + block - 1) / block + 1);
}

void MeshStream::name_buffers(Op& op) const {
  const bool keys_move = op.payload == Payload::kKeyValue;
  const Payload own_sums = keys_move ? Payload::kQueryGradients : Payload::kKeyGradients;
  const Payload moved_sums = keys_move ? Payload::kKeyGradients : Payload::kQueryGradients;
  switch (op.kind) {
    case OpKind::kAttend:
      op.q_buffer = buffers_.gathered(Payload::kQuery);
      op.buffer = buffers_.of_ring(Payload::kKeyValue, op.buffer);
      break;
    case OpKind::kSend:
    case OpKind::kReceive:
      op.buffer = buffers_.of_ring(op.payload, op.buffer);
      break;
    case OpKind::kFinalize:
      op.buffer = buffers_.gathered(Payload::kOutput);
      break;
    case OpKind::kDelta:
      name_buffers_of_delta(op);
      break;
    case OpKind::kBackward:
      op.buffer = buffers_.of_ring(op.payload, op.buffer);
      op.q_buffer = buffers_.gathered(keys_move ? Payload::kQuerySide : Payload::kKeyValue);
      op.state = buffers_.of_ring(moved_sums, op.state);
      op.source_state = buffers_.gathered(own_sums);
      break;
    case OpKind::kAdd:
      op.source_state = buffers_.of_ring(op.payload, op.source_state);
      op.state = buffers_.of_ring(op.payload, op.state);
      break;
    case OpKind::kMerge:
    case OpKind::kCopy:
    case OpKind::kCompute:
      break;
  }
}

void MeshStream::name_buffers_of_delta(Op& op) const {
  op.buffer = buffers_.gathered(Payload::kOutput);
  op.q_buffer = buffers_.gathered(Payload::kQuerySide);
  op.state = buffers_.gathered(Payload::kKeyGradients);
  op.source_state = buffers_.gathered(Payload::kQueryGradients);
  // Gradients that stay here are summed here.
  if (!plan_.mesh.are_inputs_split || micro_step_ == 0) return;
  op.starts_state = false;
  op.bytes = delta_op(*plan_.ring_of(rank_, true).problem(), 0, op.q_end, false).bytes;
}

}  // namespace ring
