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
  fluid_.start(channel.group, kMessageBit | slot, op_of(sender).work, now_ps_ + channel.latency_ps);
}

void SimulationEngine::end_flow(uint32_t slot) {
  Message& message = messages_[slot];
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
  fluid_.start(group, kMessageBit | slot, op_of(receiver).work, now_ps_);
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
  fluid_.start(group, kMessageBit | slot, op_of(sender).work, now_ps_);
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

uint32_t SimulationEngine::channel_of(uint32_t number, bool sends) {
  Lane& lane = lane_at(number);
  const int32_t peer = op_of(lane).peer;
  if (lane.channel_peer == peer && lane.channel_sends == sends) return lane.channel;
  const auto rank = static_cast<int32_t>(lane.rank);
  lane.channel = sends ? open_channel(rank, peer) : open_channel(peer, rank);
  lane.channel_peer = peer;
  lane.channel_sends = sends;
  return lane.channel;
}

uint32_t SimulationEngine::open_channel(int32_t source, int32_t destination) {
  const uint64_t key = (static_cast<uint64_t>(source) << 32) | static_cast<uint32_t>(destination);
  const auto number = static_cast<uint32_t>(channels_.size());
  const auto [entry, is_new] = channel_numbers_.try_emplace(key, number);
  if (!is_new) return entry->second;
  Channel& channel = channels_.emplace_back();
  ChannelPath& channel_path = paths_.emplace_back();
  channel.source = source;
  channel.destination = destination;
  if (copies_) return number;
  Path path = model_.path(source, destination);
  channel.group = fluid_.add_group(path.resources, path.cap);
  channel.latency_ps = path.latency_ps;
  channel_path.cap = path.narrowest;
  channel_path.links = std::move(path.links);
  return number;
}

/// The message of a send or receive that is being posted. The side that comes first makes and lists
/// it, the other takes it off the list.
uint32_t SimulationEngine::find_message(uint32_t number, const PendingOp& op) {
  const uint32_t slot = search(channels_[number], op.message);
  if (slot == kNone) return new_message(number, op);
  const Message& message = messages_[slot];
  if (message.bytes != op.bytes) {
    throw_usage(
        fmt::format("message {} from rank {} to rank {} has {} bytes at one end and {} at "
                    "the other",
                    op.message, channels_[number].source, channels_[number].destination,
                    message.bytes, op.bytes));
  }
  unlist(slot);
  return slot;
}

uint32_t SimulationEngine::new_message(uint32_t channel, const PendingOp& op) {
  uint32_t slot = static_cast<uint32_t>(messages_.size());
  if (free_messages_.empty()) {
    messages_.emplace_back();
  } else {
    slot = free_messages_.back();
    free_messages_.pop_back();
  }
  Message& message = messages_[slot];
  message = Message{};
  message.number = op.message;
  message.bytes = op.bytes;
  message.channel = channel;
  list(slot);
  return slot;
}

/// Peers mostly post in the same order, so the first of the list is the usual answer.
uint32_t SimulationEngine::search(const Channel& channel, int64_t number) const {
  if (channel.table) return channel.table->find(number);
  uint32_t slot = channel.first_message;
  while (slot != kNone && messages_[slot].number != number) slot = messages_[slot].next;
  return slot;
}

void SimulationEngine::list(uint32_t slot) {
  constexpr uint32_t kMostWithoutTable = 24;
  Message& message = messages_[slot];
  Channel& channel = channels_[message.channel];
  message.previous = channel.last_message;
  if (channel.last_message == kNone) {
    channel.first_message = slot;
  } else {
    messages_[channel.last_message].next = slot;
  }
  channel.last_message = slot;
  ++channel.message_count;
  if (channel.table) {
    channel.table->insert(message.number, slot);
  } else if (channel.message_count > kMostWithoutTable) {
    channel.table = std::make_unique<MessageTable>();
    for (uint32_t at = channel.first_message; at != kNone; at = messages_[at].next) {
      channel.table->insert(messages_[at].number, at);
    }
  }
}

void SimulationEngine::unlist(uint32_t slot) {
  const Message& message = messages_[slot];
  Channel& channel = channels_[message.channel];
  (message.previous == kNone ? channel.first_message : messages_[message.previous].next) =
      message.next;
  (message.next == kNone ? channel.last_message : messages_[message.next].previous) =
      message.previous;
  --channel.message_count;
  if (channel.table) channel.table->erase(message.number);
}

}  // namespace ring
