// How messages meet and travel: over links, or copied by processors.
#include <fmt/format.h>

#include "core/error.h"
#include "sim/engine.h"

namespace ring {

void SimulationEngine::post_send(uint32_t number) {
  const uint32_t channel = channel_of(number, true);
  Lane& lane = lane_at(number);
  const PendingOp& op = op_of(lane);
  lane.state = LaneState::kPosted;
  const uint32_t slot = find_message(channel, op);
  Message& message = messages_[slot];
  if (message.sender != kNone || message.stage == Stage::kArrived) {
    throw_usage(fmt::format("message {} from rank {} to rank {} is sent twice", op.message,
                            lane.rank, op.peer));
  }
  message.sender = number;
  lane.message = slot;
  const bool is_eager = op.is_eager;
  if (copies_ && is_eager) {
    begin_bounce(slot);
  } else if (is_eager || message.receiver != kNone) {
    if (copies_) {
      wake_receiver(slot);
    } else {
      begin_flow(slot);
    }
  }
}

void SimulationEngine::post_receive(uint32_t number) {
  const uint32_t channel = channel_of(number, false);
  Lane& lane = lane_at(number);
  const PendingOp& op = op_of(lane);
  lane.state = LaneState::kPosted;
  const uint32_t slot = find_message(channel, op);
  Message& message = messages_[slot];
  if (message.receiver != kNone) {
    throw_usage(fmt::format("message {} from rank {} to rank {} is received twice", op.message,
                            op.peer, lane.rank));
  }
  message.receiver = number;
  lane.message = slot;
  switch (message.stage) {
    case Stage::kPosted:
      if (message.sender == kNone) {
        begin_wait(message);
      } else if (copies_) {
        begin_copy(slot);
      } else {
        begin_flow(slot);
      }
      break;
    case Stage::kBouncing:
      begin_wait(message);
      break;
    case Stage::kMoving:
      lane.state = LaneState::kRunning;
      recorder_.transfer_begins(static_cast<int>(lane.rank), now_ps_);
      break;
    case Stage::kArrived:
      if (copies_) {
        begin_copy(slot);
      } else {
        free_messages_.push_back(slot);
        complete(number);
      }
      break;
  }
}

void SimulationEngine::begin_wait(Message& message) {
  message.receiver_waits = true;
  recorder_.wait_begins(channels_[message.channel].destination, now_ps_);
}

void SimulationEngine::end_wait(Message& message) {
  if (!message.receiver_waits) return;
  message.receiver_waits = false;
  recorder_.wait_ends(channels_[message.channel].destination, now_ps_);
}

/// Sender and, unless the protocol is eager, receiver are there.
void SimulationEngine::begin_flow(uint32_t slot) {
  Message& message = messages_[slot];
  const Channel& channel = channels_[message.channel];
  Lane& sender = lane_at(message.sender);
  end_wait(message);
  message.stage = Stage::kMoving;
  sender.state = LaneState::kRunning;
  start_op(sender);
  recorder_.transfer_begins(channel.source, now_ps_);
  if (message.receiver != kNone) {
    Lane& receiver = lane_at(message.receiver);
    receiver.state = LaneState::kRunning;
    start_op(receiver);
    recorder_.transfer_begins(channel.destination, now_ps_);
  }
  if (interference_.is_on()) {
    interference_.transfer_begins(channel.source, channel.destination, channel.group,
                                  paths_[message.channel].cap);
  }
  fluid_.start(channel.group, token_of_message(slot), op_of(sender).work,
               now_ps_ + channel.latency_ps);
}

void SimulationEngine::end_flow(uint32_t slot) {
  Message& message = messages_[slot];
  __builtin_prefetch(&lanes_[message.sender]);
  if (message.receiver != kNone) __builtin_prefetch(&lanes_[message.receiver]);
  Channel& channel = channels_[message.channel];
  channel.carried += message.bytes;
  ++message_count_;
  if (interference_.is_on()) {
    interference_.transfer_ends(channel.source, channel.destination, channel.group);
  }
  const uint32_t sender = message.sender, receiver = message.receiver;
  recorder_.transfer_ends(channel.source, now_ps_);
  if (receiver != kNone) {
    recorder_.transfer_ends(channel.destination, now_ps_);
    free_messages_.push_back(slot);
    complete(receiver);
  } else {
    message.stage = Stage::kArrived;
    message.sender = kNone;
  }
  complete(sender);
}

/// The message is there; the receiver that waited for it goes on when it is awake.
void SimulationEngine::wake_receiver(uint32_t slot) {
  const uint32_t receiver = messages_[slot].receiver;
  if (model_.wakeup_ps() == 0) {
    begin_copy(slot);
    return;
  }
  lane_at(receiver).state = LaneState::kWakingToCopy;
  events_.schedule(receiver, now_ps_ + model_.wakeup_ps());
}

/// The receiver copies the message on its processor.
void SimulationEngine::begin_copy(uint32_t slot) {
  Message& message = messages_[slot];
  const Channel& channel = channels_[message.channel];
  Lane& receiver = lane_at(message.receiver);
  end_wait(message);
  message.stage = Stage::kMoving;
  receiver.state = LaneState::kRunning;
  start_op(receiver);
  recorder_.transfer_begins(channel.destination, now_ps_);
  if (message.sender != kNone) {
    lane_at(message.sender).state = LaneState::kRunning;
    start_op(lane_at(message.sender));
    recorder_.transfer_begins(channel.source, now_ps_);
  }
  const int group = copy_group(message.receiver);
  if (interference_.is_on()) {
    interference_.transfer_begins(channel.source, channel.destination, group, 0);
  }
  fluid_.start(group, token_of_message(slot), op_of(receiver).work, now_ps_);
}

void SimulationEngine::end_copy(uint32_t slot) {
  const Message& message = messages_[slot];
  const Channel& channel = channels_[message.channel];
  const uint32_t sender = message.sender, receiver = message.receiver;
  ++message_count_;
  recorder_.transfer_ends(channel.destination, now_ps_);
  if (sender != kNone) recorder_.transfer_ends(channel.source, now_ps_);
  if (interference_.is_on()) {
    interference_.transfer_ends(channel.source, channel.destination, lane_groups_[receiver].copy);
  }
  free_messages_.push_back(slot);
  complete(receiver);
  if (sender == kNone) return;
  if (recorder_.keeps_timeline()) record(sender);
  if (model_.wakeup_ps() == 0) {
    reach_next_point(sender);
  } else {
    lane_at(sender).state = LaneState::kWakingDone;
    events_.schedule(sender, now_ps_ + model_.wakeup_ps());
  }
}

/// An eager sender copies the message out of the way and goes on.
void SimulationEngine::begin_bounce(uint32_t slot) {
  Message& message = messages_[slot];
  message.stage = Stage::kBouncing;
  Lane& sender = lane_at(message.sender);
  sender.state = LaneState::kRunning;
  const int rank = static_cast<int>(sender.rank);
  recorder_.transfer_begins(rank, now_ps_);
  const int group = copy_group(message.sender);
  if (interference_.is_on()) interference_.transfer_begins(rank, rank, group, 0);
  fluid_.start(group, token_of_message(slot), op_of(sender).work, now_ps_);
}

void SimulationEngine::end_bounce(uint32_t slot) {
  Message& message = messages_[slot];
  const uint32_t sender = message.sender;
  const int rank = static_cast<int>(lane_at(sender).rank);
  recorder_.transfer_ends(rank, now_ps_);
  if (interference_.is_on()) {
    interference_.transfer_ends(rank, rank, lane_groups_[sender].copy);
  }
  message.sender = kNone;
  message.stage = Stage::kArrived;
  if (message.receiver != kNone) wake_receiver(slot);
  complete(sender);
}

}  // namespace ring
