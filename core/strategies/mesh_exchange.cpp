// The all-to-alls of a MeshStream: everybody sends to the k-th mate after it and receives from the
// k-th before it.
#include "core/strategies/mesh_stream.h"

namespace ring {

void MeshStream::send_in(Payload payload, OpBatch& batch) {
  if (plan_.tokens(rank_) == 0) return;
  for (int hops = 1; hops < plan_.mesh.inner; ++hops) {
    const int mate = plan_.mate(rank_, hops);
    const HeadRange theirs = plan_.heads_of(mate);
    const int32_t stage = buffers_.sent(payload, mate);
    copy(payload, rank_, theirs, {kHomeBuffer, -1}, {stage, -1}, batch);
    transfer(OpKind::kSend, payload, mate, rank_, theirs, stage, 0, batch);
  }
  copy(payload, rank_, plan_.heads_of(rank_), {kHomeBuffer, -1}, gathered(payload), batch);
}

void MeshStream::receive_in(Payload payload, OpBatch& batch) {
  const HeadRange heads = plan_.heads_of(rank_);
  for (int hops = 1; hops < plan_.mesh.inner; ++hops) {
    const int mate = plan_.mate(rank_, -hops);
    if (plan_.tokens(mate) == 0) continue;
    if (const auto row = plan_.row_of(mate)) {
      transfer(OpKind::kReceive, payload, mate, mate, heads, buffers_.gathered(payload), *row,
               batch);
      continue;
    }
    const int32_t stage = buffers_.received(payload, mate);
    transfer(OpKind::kReceive, payload, mate, mate, heads, stage, 0, batch);
    copy(payload, mate, heads, {stage, -1}, gathered(payload), batch);
  }
}

void MeshStream::send_out(Payload payload, OpBatch& batch) {
  const HeadRange heads = plan_.heads_of(rank_);
  for (int hops = 1; hops < plan_.mesh.inner; ++hops) {
    const int mate = plan_.mate(rank_, hops);
    if (plan_.tokens(mate) == 0) continue;
    if (const auto row = plan_.row_of(mate)) {
      transfer(OpKind::kSend, payload, mate, mate, heads, buffers_.gathered(payload), *row, batch);
      continue;
    }
    const int32_t stage = buffers_.sent(payload, mate);
    copy(payload, mate, heads, gathered(payload), {stage, -1}, batch);
    transfer(OpKind::kSend, payload, mate, mate, heads, stage, 0, batch);
  }
}

void MeshStream::receive_out(Payload payload, OpBatch& batch) {
  if (plan_.tokens(rank_) == 0) return;
  bring_home(payload, plan_.heads_of(rank_), gathered(payload), batch);
  for (int hops = 1; hops < plan_.mesh.inner; ++hops) {
    const int mate = plan_.mate(rank_, -hops);
    const int32_t stage = buffers_.received(payload, mate);
    transfer(OpKind::kReceive, payload, mate, rank_, plan_.heads_of(mate), stage, 0, batch);
    bring_home(payload, plan_.heads_of(mate), {stage, -1}, batch);
  }
}

MeshStream::Rows MeshStream::gathered(Payload payload) const {
  return {buffers_.gathered(payload), plan_.group_number(rank_)};
}

void MeshStream::bring_home(Payload payload, HeadRange heads, Rows source, OpBatch& batch) {
  if (!is_gradient(payload) || is_first(payload, heads)) {
    copy(payload, rank_, heads, source, {}, batch);
    return;
  }
  Op op = row_op(OpKind::kAdd, payload, rank_, heads);
  name_keys(op);
  op.source_state = source.buffer;
  op.source_order = source.order;
  op.state = kHomeBuffer;
  op.bytes *= 3;  // Two are read, one is written.
  append(op, {}, batch);
}

bool MeshStream::is_first(Payload payload, HeadRange heads) {
  const HeadRange some = heads_in(plan_.problem, payload, heads);
  bool is_new = true;
  for (int64_t head = some.begin; head < some.end; ++head)
    is_new = brought_.insert({payload, head}).second && is_new;
  return is_new;
}

}  // namespace ring
