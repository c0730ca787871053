#include "core/strategies/query_forward.h"

#include <algorithm>

#include "core/strategies/rows_op.h"

namespace ring {
namespace {

/// Partial results have the track that gradients have in the backward pass.
constexpr int kQueryTrack = 0, kPartialTrack = 1;

}  // namespace

QueryForward::QueryForward(const QueryPlan& plan, int rank, RankTracks& tracks,
                           int32_t first_buffer)
    : plan_(plan),
      rank_(rank),
      tracks_(tracks),
      writer_(tracks.writer()),
      first_buffer_(first_buffer),
      buffers_(static_cast<size_t>(plan.tuning.pipeline_depth)),
      foreign_(static_cast<size_t>(plan.foreign_slots())),
      answers_(static_cast<size_t>(plan.answer_states())) {}

void QueryForward::begin(int64_t first_message) {
  first_message_ = first_message;
  own_.clear();
  given_.clear();
  round_ = 0;
  step_ = -1;
  is_finished_ = false;
}

bool QueryForward::next(OpBatch& batch) {
  if (is_finished_) return false;
  const size_t before = batch.ops.size();
  while (batch.ops.size() == before && !is_finished_) advance(batch);
  return batch.ops.size() > before;
}

void QueryForward::advance(OpBatch& batch) {
  if (round_ == plan_.messages.rounds()) {
    finish(batch);
    return;
  }
  if (step_ < 0) {
    if (round_ < plan_.messages.messages_of(rank_)) own_message(batch);
  } else {
    const int shard = plan_.at(rank_, -1 - step_);
    if (round_ < plan_.messages.messages_of(shard) && plan_.last_step(shard, round_) >= step_) {
      received_message(shard, batch);
    }
    if (plan_.is_taken_at_once()) collect_answers(1, batch);
    expect_answer();
  }
  if (++step_ == plan_.ranks() - 1) {
    step_ = -1;
    ++round_;
  }
}

void QueryForward::own_message(OpBatch& batch) {
  const KeySlice rows = plan_.messages.message(rank_, round_);
  own_.emplace_back(plan_.problem, plan_.tuning, plan_.partition,
                    RowPlace{rank_, rows, kHomeBuffer, rows.begin,
                             static_cast<int32_t>(round_) * plan_.states_of_own});
  pass_on(rank_, rows, kHomeBuffer, {}, batch);
  attend(own_.back(), {}, batch);
}

void QueryForward::received_message(int shard, OpBatch& batch) {
  const KeySlice rows = plan_.messages.message(shard, round_);
  const auto slot = static_cast<size_t>(received_++ % plan_.tuning.pipeline_depth);
  const int32_t buffer = first_buffer_ + static_cast<int32_t>(slot);
  Op op = query_op(OpKind::kReceive, shard, rows, buffer);
  op.peer = plan_.at(rank_, -1);
  op.lane = tracks_.receive_lane(kQueryTrack);
  op.step = step_ + 1;
  const LanePoint arrived = writer_.append(op, buffers_[slot], batch);
  buffers_[slot] = pass_on(shard, rows, buffer, {&arrived, 1}, batch);
  if (!plan_.is_needed(shard, round_, rank_)) return;
  buffers_[slot].push_back(answer(shard, rows, buffer, arrived, batch));
}

LanePoint QueryForward::answer(int shard, KeySlice rows, int32_t buffer, LanePoint arrived,
                               OpBatch& batch) {
  const auto slot = static_cast<size_t>(answered_++ % plan_.foreign_slots());
  const auto state = plan_.own_states() + static_cast<int32_t>(slot) * plan_.states_of_foreign;
  AttendWriter attends(plan_.problem, plan_.tuning, plan_.partition,
                       RowPlace{shard, rows, buffer, 0, state});
  Readers deps = foreign_[slot];
  deps.push_back(arrived);
  attend(attends, deps, batch);
  Partial partial{shard, round_, step_, shard, state, std::nullopt};
  if (plan_.tuning.is_deterministic) {
    partial.nodes = attends.nodes();
    partial.ready = writer_.last(kComputeLane);
  } else {
    partial.ready = attends.finalize_partial(step_ + 1, writer_, batch);
  }
  if (plan_.when == ReturnOfPartials::kAtOnce) {
    foreign_[slot] = give(partial, batch);
  } else {
    given_.push_back(partial);
  }
  return *partial.ready;
}

void QueryForward::expect_answer() {
  const int other = plan_.at(rank_, 1 + step_);
  if (round_ >= plan_.messages.messages_of(rank_) || plan_.last_step(rank_, round_) < step_ ||
      !plan_.is_needed(rank_, round_, other)) {
    return;
  }
  const auto slot = static_cast<int32_t>(expected_++ % std::max(plan_.answer_states(), 1));
  const int32_t state = plan_.own_states() + plan_.foreign_states() + slot;
  awaited_.push_back({rank_, round_, step_, other, state, std::nullopt});
}

void QueryForward::collect_answers(size_t keep, OpBatch& batch) {
  while (awaited_.size() > keep) {
    const Partial partial = awaited_.front();
    awaited_.pop_front();
    if (plan_.tuning.is_deterministic) {
      collect_nodes(partial, batch);
      continue;
    }
    Readers& free =
        answers_[static_cast<size_t>(partial.state - plan_.own_states() - plan_.foreign_states())];
    Op op = partial_op(OpKind::kReceive, partial);
    op.lane = tracks_.receive_lane(kPartialTrack);
    const LanePoint arrived = writer_.append(op, free, batch);
    AttendWriter& own = own_[static_cast<size_t>(partial.m)];
    free = {own.merge(partial.state, op.step, {&arrived, 1}, writer_, batch)};
  }
}

void QueryForward::collect_nodes(const Partial& partial, OpBatch& batch) {
  AttendWriter& own = own_[static_cast<size_t>(partial.m)];
  int64_t number = 0;
  for (StateTree::Node node : plan_.nodes.at({rank_, partial.m, partial.peer})) {
    node.state = own.take_state();
    Op op = node_op(OpKind::kReceive, partial, node.state, number++);
    op.lane = tracks_.receive_lane(kPartialTrack);
    Readers deps = own.last_use(node.state);
    if (deps.empty()) deps = finished_;
    const LanePoint arrived = writer_.append(op, deps, batch);
    own.merge_node(node, op.step, arrived, writer_, batch);
  }
}

void QueryForward::finish(OpBatch& batch) {
  for (const Partial& partial : given_) {
    const int32_t slot = (partial.state - plan_.own_states()) / plan_.states_of_foreign;
    foreign_[static_cast<size_t>(slot)] = give(partial, batch);
  }
  collect_answers(0, batch);
  for (AttendWriter& own : own_) own.finalize(writer_, batch);
  if (writer_.last(kComputeLane).position >= 0) finished_ = {writer_.last(kComputeLane)};
  is_finished_ = true;
}

Readers QueryForward::give(const Partial& partial, OpBatch& batch) {
  Readers sent;
  const auto send = [&](Op op) {
    op.lane = tracks_.send_lane(kPartialTrack);
    sent.push_back(writer_.append(op, {&*partial.ready, 1}, batch));
  };
  if (!plan_.tuning.is_deterministic) send(partial_op(OpKind::kSend, partial));
  int64_t number = 0;
  for (const StateTree::Node& node : partial.nodes)
    send(node_op(OpKind::kSend, partial, node.state, number++));
  return sent;
}

Op QueryForward::node_op(OpKind kind, const Partial& partial, int32_t state, int64_t number) const {
  Op op = partial_op(kind, partial);
  op.payload = Payload::kState;
  op.bytes = payload_bytes(plan_.problem, op.payload, plan_.all_heads(), op.q_end - op.q_begin);
  const int64_t first = plan_.ranks() * plan_.messages.rounds();
  const int64_t of_rows = partial.shard * plan_.messages.rounds() + partial.m;
  op.message = first_message_ + first + of_rows * plan_.chunks() + number;
  op.state = state;
  return op;
}

Op QueryForward::partial_op(OpKind kind, const Partial& partial) const {
  const KeySlice rows = plan_.messages.message(partial.shard, partial.m);
  Op op = rows_op(plan_.problem, kind, Payload::kPartial, partial.shard, rows, plan_.all_heads());
  op.message =
      first_message_ + (plan_.ranks() + partial.shard) * plan_.messages.rounds() + partial.m;
  op.peer = partial.peer;
  op.state = partial.state;
  op.step = partial.step + 1;
  return op;
}

Op QueryForward::query_op(OpKind kind, int shard, KeySlice rows, int32_t buffer) const {
  Op op = rows_op(plan_.problem, kind, Payload::kQuery, shard, rows, plan_.all_heads());
  op.message = first_message_ + shard * plan_.messages.rounds() + round_;
  op.buffer = buffer;
  op.buffer_begin = buffer == kHomeBuffer ? rows.begin : 0;
  return op;
}

Readers QueryForward::pass_on(int shard, KeySlice rows, int32_t buffer,
                              std::span<const LanePoint> deps, OpBatch& batch) {
  if (plan_.last_step(shard, round_) <= step_) return {};
  Op op = query_op(OpKind::kSend, shard, rows, buffer);
  op.peer = plan_.at(rank_, 1);
  op.lane = tracks_.send_lane(kQueryTrack);
  op.step = step_ + 2;
  return {writer_.append(op, deps, batch)};
}

void QueryForward::attend(AttendWriter& attends, std::span<const LanePoint> deps, OpBatch& batch) {
  const KeySlice keys{0, plan_.partition.shard_tokens(rank_)};
  for (int64_t i = 0; i < plan_.messages.blocks_of(keys); ++i) {
    const KeySlice block = plan_.messages.block(keys, i);
    const AttendPlace place{rank_, block, kHomeBuffer, block.begin, step_ + 1};
    if (attends.append(place, deps, writer_, batch)) deps = {};  // The lane is in order.
  }
}

}  // namespace ring
