#include "core/strategies/mesh_stream.h"

#include "core/strategies/backward_op.h"

namespace ring {

MeshStream::MeshStream(const MeshPlan& plan, int lanes, int rank)
    : plan_(plan),
      rank_(rank),
      buffers_(plan, rank),
      writer_(lanes),
      appended_(static_cast<size_t>(lanes), 0),
      is_backward_(!has_forward(plan.problem.pass)) {}

bool MeshStream::next(OpBatch& batch) {
  const size_t before = batch.ops.size();
  while (batch.ops.size() == before && stage_ != Stage::kEnd) {
    const int32_t step = micro_step_;
    advance(batch);
    for (size_t i = before; i < batch.ops.size(); ++i) batch.ops[i].micro_step = step;
  }
  return batch.ops.size() > before;
}

void MeshStream::advance(OpBatch& batch) {
  switch (stage_) {
    case Stage::kIn:
      for (const Payload payload : payloads_in(plan_, is_backward_)) send_in(payload, batch);
      for (const Payload payload : payloads_in(plan_, is_backward_)) receive_in(payload, batch);
      begin_ring();
      return;
    case Stage::kRing:
      if (!ring_ops(batch)) stage_ = Stage::kOut;
      return;
    case Stage::kOut:
      for (const Payload payload : payloads_out(plan_, is_backward_)) send_out(payload, batch);
      for (const Payload payload : payloads_out(plan_, is_backward_)) receive_out(payload, batch);
      end_pass();
      return;
    case Stage::kGap:
      append_optimizer_gap(plan_.tuning, writer_, batch);
      stage_ = Stage::kEnd;
      return;
    case Stage::kEnd:
      return;
  }
}

void MeshStream::begin_ring() {
  stage_ = Stage::kRing;
  ring_ = plan_.ring_of(rank_, is_backward_).stream(plan_.group_of(rank_));
  before_ring_ = appended_;
  met_.clear();
}

void MeshStream::end_pass() {
  const Pass pass = plan_.problem.pass;
  stage_ = Stage::kIn;
  if (!is_backward_ && has_backward(pass)) {
    is_backward_ = true;
    return;
  }
  is_backward_ = !has_forward(pass);
  if (++micro_step_ == plan_.tuning.accumulation_steps) stage_ = Stage::kGap;
}

Op MeshStream::row_op(OpKind kind, Payload payload, int shard, HeadRange heads) const {
  return rows_op(plan_.problem, kind, payload, shard, {0, plan_.tokens(shard)}, heads);
}

void MeshStream::name_keys(Op& op) {
  if (op.payload != Payload::kKeyValue && op.payload != Payload::kKeyGradients) return;
  op.kv_shard = op.q_shard;
  op.kv_end = op.q_end;
  op.q_shard = -1;
  op.q_end = 0;
}

void MeshStream::copy(Payload payload, int shard, HeadRange heads, Rows source, Rows target,
                      OpBatch& batch) {
  Op op = row_op(OpKind::kCopy, payload, shard, heads);
  op.source_buffer = source.buffer;
  op.source_order = source.order;
  op.buffer = target.buffer;
  op.target_order = target.order;
  append(op, {}, batch);
}

void MeshStream::transfer(OpKind kind, Payload payload, int mate, int shard, HeadRange heads,
                          int32_t buffer, int64_t row, OpBatch& batch) {
  constexpr int64_t kPayloads = 16;  // More than there are.
  Op op = row_op(kind, payload, shard, heads);
  const bool is_receive = kind == OpKind::kReceive;
  op.peer = mate;
  op.message = micro_step_ * kPayloads + static_cast<int64_t>(payload);
  op.buffer = buffer;
  op.buffer_begin = row;
  name_keys(op);
  int64_t& count = is_receive ? received_ : sent_;
  const int lanes = plan_.tuning.lanes;
  op.lane = plan_.first_lane() + (is_receive ? lanes : 0) + static_cast<int32_t>(count % lanes);
  ++count;
  append(op, {}, batch);
}

void MeshStream::append(const Op& op, Readers deps, OpBatch& batch) {
  order_.wait(op, deps);
  append_ordered(op, deps, batch);
}

void MeshStream::append_ordered(const Op& op, const Readers& deps, OpBatch& batch) {
  order_.done(op, writer_.append(op, deps, batch));
  ++appended_[static_cast<size_t>(op.lane)];
}

}  // namespace ring
