#include "core/strategies/kv_forward.h"

#include <algorithm>

#include "core/strategies/key_packing.h"

namespace ring {

KvForward::KvForward(const KvPlan& plan, const KvRouting& routing, int rank, RankTracks& tracks)
    : plan_(plan), routing_(routing), rank_(rank), tracks_(tracks) {}

void KvForward::begin(int64_t first_message) {
  first_message_ = first_message;
  group_ = 0;
  round_ = 0;
  step_ = -1;
}

bool KvForward::next(OpBatch& batch) {
  const size_t before = batch.ops.size();
  while (batch.ops.size() == before && group_ < plan_.groups()) advance(batch);
  return batch.ops.size() > before;
}

void KvForward::advance(OpBatch& batch) {
  if (step_ < 0) {
    if (round_ == 0) begin_group(batch);
    if (round_ < plan_.messages.messages_of(rank_)) own_message(batch);
  } else {
    const int shard = routing_.shard_at(rank_, round_, step_);
    Hop from;
    if (round_ < plan_.messages.messages_of(shard) &&
        routing_.arrives(shard, round_, rank_, step_, from)) {
      received_message(shard, from, batch);
    }
  }
  if (++step_ < routing_.steps()) return;
  step_ = -1;
  if (++round_ < plan_.messages.rounds()) return;
  attends_->finalize(tracks_.writer(), batch);
  states_ = std::max(states_, attends_->states());
  round_ = 0;
  ++group_;
}

void KvForward::begin_group(OpBatch& batch) {
  pack_ahead(plan_, rank_, group_, tracks_, batch);
  const KeySlice all{0, plan_.partition.shard_tokens(rank_)};
  attends_.emplace(plan_.problem, plan_.tuning, plan_.partition,
                   RowPlace{rank_, all, kHomeBuffer, 0, 0, plan_.heads(group_)});
}

void KvForward::own_message(OpBatch& batch) {
  const KeySlice keys = plan_.messages.message(rank_, round_);
  const int32_t buffer = tracks_.own_buffer(group_);
  if (buffer == kHomeBuffer) {
    pass_on(rank_, keys, buffer, {}, batch);
  } else {
    PackedKeys& packed = tracks_.packed(group_);
    const Readers sends = pass_on(rank_, keys, buffer, {&packed.done, 1}, batch);
    packed.readers.insert(packed.readers.end(), sends.begin(), sends.end());
  }
  attend(rank_, keys, kHomeBuffer, {}, batch);
}

void KvForward::received_message(int shard, const Hop& from, OpBatch& batch) {
  const KeySlice keys = plan_.messages.message(shard, round_);
  BufferRing& buffers = tracks_.buffers(Payload::kKeyValue, from.track, group_);
  const int32_t buffer = buffers.take(group_);
  const LanePoint arrived = receive(shard, keys, buffer, from, buffers.readers(), batch);
  Readers readers = pass_on(shard, keys, buffer, {&arrived, 1}, batch);
  if (const auto last = attend(shard, keys, buffer, {&arrived, 1}, batch)) readers.push_back(*last);
  buffers.free_after(std::move(readers));
}

LanePoint KvForward::receive(int shard, KeySlice keys, int32_t buffer, const Hop& from,
                             const Readers& readers, OpBatch& batch) {
  Op op = transfer_op(OpKind::kReceive, shard, keys, buffer);
  op.peer = from.rank;
  op.lane = tracks_.receive_lane(from.track);
  op.step = step_ + 1;
  return tracks_.writer().append(op, readers, batch);
}

Readers KvForward::pass_on(int shard, KeySlice keys, int32_t buffer,
                           std::span<const LanePoint> deps, OpBatch& batch) {
  hops_.clear();
  routing_.passes_on(shard, round_, rank_, step_, hops_);
  Readers points;
  for (const Hop& to : hops_) {
    Op op = transfer_op(OpKind::kSend, shard, keys, buffer);
    op.peer = to.rank;
    op.lane = tracks_.send_lane(to.track);
    op.step = step_ + 2;  // The hop that this send makes.
    points.push_back(tracks_.writer().append(op, deps, batch));
  }
  return points;
}

Op KvForward::transfer_op(OpKind kind, int shard, KeySlice keys, int32_t buffer) const {
  Op op;
  op.kind = kind;
  plan_.name_heads(op, group_);
  op.message = first_message_ + plan_.message_number(group_, shard, round_);
  op.bytes = payload_bytes(plan_.problem, op.payload, plan_.heads(group_), keys.end - keys.begin);
  op.buffer = buffer;
  op.kv_shard = shard;
  op.kv_begin = keys.begin;
  op.kv_end = keys.end;
  op.buffer_begin = shard == rank_ ? keys.begin : 0;
  return op;
}

std::optional<LanePoint> KvForward::attend(int shard, KeySlice keys, int32_t buffer,
                                           std::span<const LanePoint> deps, OpBatch& batch) {
  std::optional<LanePoint> last;
  for (int64_t i = 0; i < plan_.messages.blocks_of(keys); ++i) {
    const KeySlice block = plan_.messages.block(keys, i);
    const int64_t at = buffer == kHomeBuffer ? block.begin : block.begin - keys.begin;
    const AttendPlace place{shard, block, buffer, at, step_ + 1};
    if (const auto point = attends_->append(place, deps, tracks_.writer(), batch)) last = point;
  }
  return last;
}

}  // namespace ring
