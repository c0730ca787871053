// How ops come from their streams into the lanes.
#include <fmt/format.h>

#include <string>

#include "core/error.h"
#include "sim/engine.h"

namespace ring {

/// Fetches the next ops of the rank; false when there are none.
bool SimulationEngine::fetch(uint32_t rank) {
  Feed& feed = feeds_[rank];
  if (feed.is_exhausted) return false;
  batch_.clear();
  if (!feed.stream->next(batch_)) {
    feed.is_exhausted = true;
    feed.stream.reset();
    return false;
  }
  for (const Op& op : batch_.ops) {
    append(rank, op, {batch_.deps.data() + op.dep_begin, static_cast<size_t>(op.dep_count)});
  }
  return true;
}

void SimulationEngine::append(uint32_t rank, const Op& op, std::span<const LanePoint> deps) {
  require_valid(rank, op, deps);
  const int64_t index = feeds_[rank].fetched++;
  const uint32_t slot = ops_.take(op, work_of(rank, index, op), deps);
  if (recorder_.keeps_timeline()) {
    ops_.details(slot) = {index, op.flops, op.step, op.kv_shard, 0, 0};
  }
  flops_ += op.flops;
  if (op.kind == OpKind::kSend) bytes_sent_ += op.bytes;
  Lane& lane = lane_at(rank * lanes_per_rank_ + static_cast<uint32_t>(op.lane));
  ++lane.fetched;
  if (lane.first_op == kNone) {
    lane.first_op = slot;
  } else {
    ops_[lane.last_op].next = slot;
  }
  lane.last_op = slot;
}

double SimulationEngine::work_of(uint32_t rank, int64_t index, const Op& op) const {
  const int of_rank = static_cast<int>(rank);
  if (op.kind != OpKind::kSend && op.kind != OpKind::kReceive) {
    return model_.compute_work_ps(of_rank, index, op);
  }
  return copies_ ? model_.copy_work_ps(of_rank, index, op.bytes)
                 : model_.link_work(of_rank, index, op.bytes);
}

void SimulationEngine::require_valid(uint32_t rank, const Op& op,
                                     std::span<const LanePoint> deps) const {
  const auto fail = [&](const std::string& why) {
    throw_usage(fmt::format("op r{}:{} ({}): {}", rank, feeds_[rank].fetched, name(op.kind), why));
  };
  if (static_cast<uint32_t>(op.lane) >= lanes_per_rank_) {
    fail(fmt::format("there is no lane {}", op.lane));
  }
  const bool is_transfer = op.kind == OpKind::kSend || op.kind == OpKind::kReceive;
  if (is_transfer && static_cast<uint32_t>(op.peer) >= static_cast<uint32_t>(all_ranks_)) {
    fail(fmt::format("there is no rank {}", op.peer));
  }
  if (op.bytes < 0 || op.fixed_ps < 0) fail("a size or time is negative");
  const Lane* const lanes = &lanes_[rank * lanes_per_rank_];
  for (const LanePoint& dep : deps) {
    if (static_cast<uint32_t>(dep.lane) >= lanes_per_rank_ || dep.position < 0 ||
        dep.position >= lanes[dep.lane].fetched) {
      fail(fmt::format("it depends on number {} of lane {}, which is no earlier op", dep.position,
                       dep.lane));
    }
  }
}

}  // namespace ring
