// The channels between ranks, and the messages that wait on them for their other side.
#include <fmt/format.h>

#include "core/error.h"
#include "sim/engine.h"

namespace ring {

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
  // Folded: the copy of this pair of ranks whose source is simulated.
  const int32_t from = source % ranks_;
  const int32_t to = (destination - source + from + all_ranks_) % all_ranks_;
  const uint64_t key = (static_cast<uint64_t>(from) << 32) | static_cast<uint32_t>(to);
  const auto number = static_cast<uint32_t>(channels_.size());
  const auto [entry, is_new] = channel_numbers_.try_emplace(key, number);
  if (!is_new) return entry->second;
  Channel& channel = channels_.emplace_back();
  ChannelPath& channel_path = paths_.emplace_back();
  channel.source = from;
  channel.destination = to % ranks_;
  if (copies_) return number;
  Path path = model_.path(from, to);
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
