#include "core/strategies/kv_backward.h"

#include "core/strategies/backward_op.h"
#include "core/strategies/key_packing.h"

namespace ring {

KvBackward::KvBackward(const KvPlan& plan, const KvRouting& routing, const GradientWays& ways,
                       int rank, RankTracks& tracks, Numbers numbers)
    : plan_(plan),
      routing_(routing),
      ways_(ways),
      rank_(rank),
      tracks_(tracks),
      numbers_(numbers) {}

bool KvBackward::next(OpBatch& batch) {
  const size_t before = batch.ops.size();
  if (!is_begun_) delta(batch);
  is_begun_ = true;
  while (batch.ops.size() == before && group_ < plan_.groups()) advance(batch);
  return batch.ops.size() > before;
}

// Everything that is received at a step was sent at the step before it or by a rank that needed
// nothing later, so that all lanes of all ranks agree on one order and none can wait in a circle.
void KvBackward::advance(OpBatch& batch) {
  if (step_ < 0) {
    if (round_ == 0) pack_ahead(plan_, rank_, group_, tracks_, batch);
    if (round_ < plan_.messages.messages_of(rank_)) own_message(batch);
  } else if (step_ < routing_.steps()) {
    const int shard = routing_.shard_at(rank_, round_, step_);
    Hop from;
    if (round_ < plan_.messages.messages_of(shard)) {
      if (routing_.arrives(shard, round_, rank_, step_, from)) {
        received_message(shard, from, batch);
      } else {
        gradients(shard, {shard, plan_.messages.message(shard, round_)}, std::nullopt, batch);
      }
    }
  }
  if (step_ > 0 && round_ < plan_.messages.messages_of(rank_)) gradients_home(batch);
  if (++step_ <= routing_.steps()) return;
  step_ = -1;
  if (++round_ < plan_.messages.rounds()) return;
  round_ = 0;
  ++group_;
}

void KvBackward::delta(OpBatch& batch) {
  const Tokens tokens = plan_.partition.shard_tokens(rank_);
  if (tokens == 0) return;
  const Op op = delta_op(plan_.problem, rank_, tokens, numbers_.resets);
  delta_ = tracks_.writer().append(op, {}, batch);
}

void KvBackward::own_message(OpBatch& batch) {
  const KeySlice part = plan_.messages.message(rank_, round_);
  const Place place{rank_, part, kHomeBuffer, part.begin};
  Place sent = place;
  sent.buffer = tracks_.own_buffer(group_);
  if (sent.buffer != kHomeBuffer) {
    PackedKeys& packed = tracks_.packed(group_);
    const Readers sends = pass_on(sent, {&packed.done, 1}, batch);
    packed.readers.insert(packed.readers.end(), sends.begin(), sends.end());
  } else {
    // The query side is whole only when delta is.
    const bool waits = plan_.moves == Payload::kQuerySide && delta_;
    const LanePoint whole = delta_.value_or(LanePoint{});
    pass_on(sent, {&whole, waits ? size_t{1} : size_t{0}}, batch);
  }
  compute(place, {}, batch);
}

void KvBackward::received_message(int shard, const Hop& from, OpBatch& batch) {
  BufferRing& buffers = tracks_.buffers(plan_.moves, from.track, group_);
  Place place{shard, plan_.messages.message(shard, round_), buffers.take(group_)};
  Op op = transfer_op(OpKind::kReceive, plan_.moves, place);
  op.peer = from.rank;
  op.lane = tracks_.receive_lane(from.track);
  op.step = step_ + 1;
  const LanePoint arrived = tracks_.writer().append(op, buffers.readers(), batch);
  Readers readers = pass_on(place, {&arrived, 1}, batch);
  std::optional<LanePoint> computed;
  if (plan_.is_needed(shard, round_, rank_)) {
    place.gradients = tracks_.work().take(group_);
    Readers deps = tracks_.work().readers();
    deps.push_back(arrived);
    computed = compute(place, deps, batch);
    readers.push_back(*computed);
  }
  buffers.free_after(std::move(readers));
  gradients(shard, place, computed, batch);
}

// Sends on what the rank has computed, with what the rank before has gathered.
void KvBackward::gradients(int shard, const Place& place, std::optional<LanePoint> computed,
                           OpBatch& batch) {
  if (!ways_.sends(shard, round_, step_)) return;
  const bool follows = !routing_.gathers_home() && step_ > ways_.span(shard, round_).first;
  Place sum = place;
  std::optional<LanePoint> ready = computed;
  const int before = follows ? routing_.rank_at(shard, round_, step_ - 1) : -1;
  const int track = follows ? routing_.gradient_track(before, rank_, round_) : 0;
  if (follows) {
    Place received = place;
    received.gradients = tracks_.gradients(track).take(group_);
    const LanePoint arrived = receive_gradients(received, before, track, batch);
    if (computed) {
      ready = add(place, received.gradients, arrived, batch);
      tracks_.gradients(track).free_after({*ready});
    } else {
      sum = received;
      ready = arrived;
    }
  }
  sum.buffer = sum.gradients;
  sum.at = 0;
  Op op = transfer_op(OpKind::kSend, gradients_of(plan_.moves), sum);
  op.peer = ways_.destination(shard, round_, step_);
  op.lane = tracks_.send_lane(tracks_.tracks() + routing_.gradient_track(rank_, op.peer, round_));
  op.step = step_ + 2;
  const LanePoint sent = tracks_.writer().append(op, {&*ready, 1}, batch);
  (computed ? tracks_.work() : tracks_.gradients(track)).free_after({sent});
}

// What was sent to the owner at the step before.
void KvBackward::gradients_home(OpBatch& batch) {
  const int sender = routing_.rank_at(rank_, round_, step_ - 1);
  if (!ways_.sends(rank_, round_, step_ - 1)) return;
  if (ways_.destination(rank_, round_, step_ - 1) != rank_) return;
  const int track = routing_.gradient_track(sender, rank_, round_);
  Place place{rank_, plan_.messages.message(rank_, round_)};
  place.gradients = tracks_.gradients(track).take(group_);
  const LanePoint arrived = receive_gradients(place, sender, track, batch);
  const int32_t source = place.gradients;
  place.gradients = kHomeBuffer;
  tracks_.gradients(track).free_after({add(place, source, arrived, batch)});
}

Readers KvBackward::pass_on(const Place& place, std::span<const LanePoint> deps, OpBatch& batch) {
  hops_.clear();
  routing_.passes_on(place.shard, round_, rank_, step_, hops_);
  Readers points;
  for (const Hop& to : hops_) {
    Op op = transfer_op(OpKind::kSend, plan_.moves, place);
    op.peer = to.rank;
    op.lane = tracks_.send_lane(to.track);
    op.step = step_ + 2;  // The hop that this send makes.
    points.push_back(tracks_.writer().append(op, deps, batch));
  }
  return points;
}

// Blocks that see nothing are left out at home; elsewhere they set their gradients to zero.
std::optional<LanePoint> KvBackward::compute(const Place& place, std::span<const LanePoint> deps,
                                             OpBatch& batch) {
  std::optional<LanePoint> last;
  for (int64_t i = 0; i < plan_.messages.blocks_of(place.part); ++i) {
    const Op op = pairs_op(place, plan_.messages.block(place.part, i));
    if (op.visible_pairs == 0 && place.gradients == kHomeBuffer) continue;
    last = tracks_.writer().append(op, deps, batch);
  }
  return last;
}

Op KvBackward::pairs_op(const Place& place, KeySlice block) const {
  const bool keys_move = plan_.moves == Payload::kKeyValue;
  const KeySlice staying{0, plan_.partition.shard_tokens(rank_)};
  const KeySlice keys = keys_move ? block : staying, queries = keys_move ? staying : block;
  Op op = backward_op(plan_.problem, plan_.partition, {keys_move ? rank_ : place.shard, queries},
                      {keys_move ? place.shard : rank_, keys});
  op.head_begin = static_cast<int32_t>(plan_.heads(group_).begin);
  op.head_end = static_cast<int32_t>(plan_.heads(group_).end);
  op.flops /= plan_.groups();
  op.payload = plan_.moves;
  op.step = step_ + 1;
  op.buffer = place.buffer;
  op.buffer_begin = place.at + block.begin - place.part.begin;
  op.state = place.gradients;
  op.starts_state = place.gradients != kHomeBuffer;
  return op;
}

void KvBackward::set_part(Op& op, int shard, KeySlice part) const {
  if (plan_.moves == Payload::kKeyValue) {
    op.kv_shard = shard;
    op.kv_begin = part.begin;
    op.kv_end = part.end;
  } else {
    op.q_shard = shard;
    op.q_begin = part.begin;
    op.q_end = part.end;
  }
}

Op KvBackward::transfer_op(OpKind kind, Payload payload, const Place& place) const {
  const Tokens tokens = place.part.end - place.part.begin;
  Op op;
  plan_.name_heads(op, group_);
  op.kind = kind;
  op.payload = payload;
  op.message = numbers_.first_message + plan_.message_number(group_, place.shard, round_) +
               (is_gradient(payload) ? plan_.messages_of_phase() : 0);
  op.bytes = payload_bytes(plan_.problem, payload, plan_.heads(group_), tokens);
  op.buffer = place.buffer;
  op.buffer_begin = place.at;
  set_part(op, place.shard, place.part);
  return op;
}

LanePoint KvBackward::receive_gradients(const Place& place, int from, int track, OpBatch& batch) {
  Place into = place;
  into.buffer = place.gradients;
  Op op = transfer_op(OpKind::kReceive, gradients_of(plan_.moves), into);
  op.peer = from;
  op.lane = tracks_.receive_lane(tracks_.tracks() + track);
  op.step = step_ + 1;
  return tracks_.writer().append(op, tracks_.gradients(track).readers(), batch);
}

LanePoint KvBackward::add(const Place& place, int32_t source, LanePoint arrived, OpBatch& batch) {
  Op op;
  op.kind = OpKind::kAdd;
  plan_.name_heads(op, group_);
  op.payload = gradients_of(plan_.moves);
  op.step = step_ + 1;
  op.state = place.gradients;
  op.source_state = source;
  op.buffer_begin = place.gradients == kHomeBuffer ? place.part.begin : 0;
  set_part(op, place.shard, place.part);
  // Two are read, one is written.
  op.bytes = 3 * payload_bytes(plan_.problem, op.payload, plan_.heads(group_),
                               place.part.end - place.part.begin);
  return tracks_.writer().append(op, {&arrived, 1}, batch);
}

}  // namespace ring
