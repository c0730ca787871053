#include <array>
#include <cmath>

#include "core/error.h"
#include "sim/engine.h"

namespace ring {

void SimulationEngine::post(uint32_t number) {
  Lane& lane = lane_at(number);
  lane.posted_ps = lane.start_ps = now_ps_;
  switch (lane.queue.ops.front().kind) {
    case OpKind::kSend:
      post_send(number);
      break;
    case OpKind::kReceive:
      post_receive(number);
      break;
    case OpKind::kAttend:
    case OpKind::kMerge:
    case OpKind::kCopy:
    case OpKind::kFinalize:
    case OpKind::kCompute:
      post_compute(number);
      break;
  }
}

void SimulationEngine::post_compute(uint32_t number) {
  Lane& lane = lane_at(number);
  const PendingOp& op = lane.queue.ops.front();
  lane.state = LaneState::kRunning;
  recorder_.compute_begins(static_cast<int>(lane.rank), now_ps_);
  if (op.kind == OpKind::kCompute) {
    const int64_t duration_ps = std::llround(op.work);
    if (duration_ps == 0) {
      end_compute(number);
    } else {
      events_.schedule(number, now_ps_ + duration_ps);
    }
    return;
  }
  const int group = op.kind == OpKind::kCopy ? copy_group(number) : core_group(number);
  if (op.kind == OpKind::kAttend && interference_.is_on()) {
    interference_.attend_begins(static_cast<int>(lane.rank), group);
  }
  fluid_.start(group, number, op.work, now_ps_);
}

void SimulationEngine::end_compute(uint32_t number) {
  Lane& lane = lane_at(number);
  const int rank = static_cast<int>(lane.rank);
  recorder_.compute_ends(rank, now_ps_);
  if (lane.queue.ops.front().kind == OpKind::kAttend && interference_.is_on()) {
    interference_.attend_ends(rank, lane.core_group);
  }
  complete(number);
}

int SimulationEngine::core_group(uint32_t number) {
  Lane& lane = lane_at(number);
  if (lane.core_group < 0) {
    const int core = model_.core_of(static_cast<int>(lane.rank));
    lane.core_group = fluid_.add_group({&core, 1}, 1);
  }
  return lane.core_group;
}

/// Of a lane's copies, which take memory bandwidth as well.
int SimulationEngine::copy_group(uint32_t number) {
  Lane& lane = lane_at(number);
  if (lane.copy_group < 0) {
    const int rank = static_cast<int>(lane.rank);
    const std::array<int, 2> resources{model_.core_of(rank), model_.memory_of(rank)};
    const size_t count = resources[1] < 0 ? 1 : 2;
    lane.copy_group = fluid_.add_group({resources.data(), count}, 1);
  }
  return lane.copy_group;
}

void SimulationEngine::end_work(Fluid::Token token) {
  if ((token & kMessageBit) == 0) {
    end_compute(static_cast<uint32_t>(token));
    return;
  }
  const auto slot = static_cast<uint32_t>(token & ~kMessageBit);
  if (!copies_) {
    end_flow(slot);
  } else if (messages_[slot].stage == Stage::kBouncing) {
    end_bounce(slot);
  } else {
    end_copy(slot);
  }
}

}  // namespace ring
