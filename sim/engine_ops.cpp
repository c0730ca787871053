#include <array>

#include "core/error.h"
#include "sim/engine.h"

namespace ring {

void SimulationEngine::post(uint32_t number) {
  Lane& lane = lane_at(number);
  if (recorder_.keeps_timeline()) {
    OpDetails& details = ops_.details(lane.first_op);
    details.posted_ps = details.start_ps = now_ps_;
  }
  switch (op_of(lane).kind()) {
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
    case OpKind::kBackward:
    case OpKind::kDelta:
    case OpKind::kAdd:
      post_compute(number);
      break;
  }
}

void SimulationEngine::post_compute(uint32_t number) {
  Lane& lane = lane_at(number);
  const PendingOp& op = op_of(lane);
  lane.state = LaneState::kRunning;
  recorder_.compute_begins(static_cast<int>(lane.rank), now_ps_);
  if (op.kind() == OpKind::kCompute) {
    const auto duration_ps = static_cast<Picoseconds>(op.work + 0.5);
    if (duration_ps == 0) {
      end_compute(number);
    } else {
      events_.schedule(number, now_ps_ + duration_ps);
    }
    return;
  }
  const int group = op.kind() == OpKind::kCopy ? copy_group(number) : core_group(number);
  if (computes_pairs(op.kind()) && interference_.is_on()) {
    interference_.attend_begins(static_cast<int>(lane.rank), group);
  }
  fluid_.start(group, number, op.work, now_ps_);
}

void SimulationEngine::end_compute(uint32_t number) {
  Lane& lane = lane_at(number);
  const int rank = static_cast<int>(lane.rank);
  recorder_.compute_ends(rank, now_ps_);
  if (computes_pairs(op_of(lane).kind()) && interference_.is_on()) {
    interference_.attend_ends(rank, lane_groups_[number].core);
  }
  complete(number);
}

int SimulationEngine::core_group(uint32_t number) {
  int& group = lane_groups_[number].core;
  if (group < 0) {
    const int core = model_.core_of(static_cast<int>(lane_at(number).rank));
    group = fluid_.add_group({&core, 1}, 1);
  }
  return group;
}

/// Of a lane's copies, which take memory bandwidth as well.
int SimulationEngine::copy_group(uint32_t number) {
  int& group = lane_groups_[number].copy;
  if (group < 0) {
    const int rank = static_cast<int>(lane_at(number).rank);
    const std::array<int, 2> resources{model_.core_of(rank), model_.memory_of(rank)};
    const size_t count = resources[1] < 0 ? 1 : 2;
    group = fluid_.add_group({resources.data(), count}, 1);
  }
  return group;
}

void SimulationEngine::end_work(Fluid::Token token) {
  if (token < lanes_.size()) {
    end_compute(token);
    return;
  }
  const uint32_t slot = token - static_cast<uint32_t>(lanes_.size());
  if (!copies_) {
    end_flow(slot);
  } else if (messages_[slot].stage == Stage::kBouncing) {
    end_bounce(slot);
  } else {
    end_copy(slot);
  }
}

}  // namespace ring
