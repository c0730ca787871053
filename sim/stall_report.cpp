// What is said about a program that did not finish.
#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "sim/engine.h"

namespace ring {

/// Throws unless every op is done and every message received.
void SimulationEngine::check_finished() const {
  constexpr int kMostNamed = 12;
  std::string waits;
  int count = 0;
  for (uint32_t number = 0; number < lanes_.size(); ++number) {
    const Lane& lane = lanes_[number];
    if (lane.state == LaneState::kIdle) continue;
    if (count++ < kMostNamed) waits += "\n  " + describe_wait(lane, number);
  }
  for (const Channel& channel : channels_) {
    for (uint32_t at = channel.first_message; at != kNone; at = messages_[at].next) {
      if (messages_[at].stage != Stage::kArrived) continue;
      if (count++ >= kMostNamed) continue;
      waits += fmt::format("\n  rank {} never receives message {} from rank {}",
                           channel.destination, messages_[at].number, channel.source);
    }
  }
  if (count == 0) return;
  if (count > kMostNamed) waits += fmt::format("\n  and {} more", count - kMostNamed);
  throw Error(
      ErrorKind::kRunFailed,
      fmt::format("the program cannot finish: after {} ops nothing can go on{}", op_count_, waits),
      "`check` names the cycle of ops that wait for each other");
}

std::string SimulationEngine::describe_wait(const Lane& lane, uint32_t number) const {
  const uint32_t first = lane.rank * lanes_per_rank_;
  const PendingOp& op = op_of(lane);
  const std::string what = fmt::format("rank {}, lane {} ({} number {})", lane.rank, number - first,
                                       name(op.kind()), lane.done);
  if (lane.state == LaneState::kNeedsDeps) {
    const PackedPoint point = ops_.deps(op)[lane.next_dep];
    return fmt::format("{} waits for number {} of its lane {}", what, point.position(),
                       point.lane());
  }
  if (op.kind() == OpKind::kSend) {
    return fmt::format("{} waits for rank {} to receive message {}", what, op.peer, op.message);
  }
  return fmt::format("{} waits for message {} from rank {}", what, op.message, op.peer);
}

}  // namespace ring
