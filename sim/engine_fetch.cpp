// How ops come from their streams into the lanes.
#include <fmt/format.h>

#include <string>

#include "core/error.h"
#include "sim/engine.h"

namespace ring {

namespace {

bool is_transfer(OpKind kind) { return kind == OpKind::kSend || kind == OpKind::kReceive; }

}  // namespace

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
  Lane* const lanes = &lanes_[rank * lanes_per_rank_];
  for (const Op& op : batch_.ops) {
    const std::span<const LanePoint> deps(batch_.deps.data() + op.dep_begin,
                                          static_cast<size_t>(op.dep_count));
    const int64_t index = feed.fetched++;
    if (const std::string fault = fault_of(op, deps, lanes); !fault.empty()) {
      throw_usage(fmt::format("op r{}:{} ({}): {}", rank, index, name(op.kind), fault));
    }
    append(rank, index, op, deps, lanes[op.lane]);
  }
  return true;
}

void SimulationEngine::append(uint32_t rank, int64_t index, const Op& op,
                              std::span<const LanePoint> deps, Lane& lane) {
  const uint32_t slot = ops_.take(op, work_of(rank, index, op), deps);
  if (recorder_.keeps_timeline()) {
    ops_.details(slot) = {index, op.flops, op.step, op.kv_shard, 0, 0};
  }
  flops_ += op.flops;
  if (op.kind == OpKind::kSend) bytes_sent_ += op.bytes;
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
  if (!is_transfer(op.kind)) return model_.compute_work_ps(of_rank, index, op);
  return copies_ ? model_.copy_work_ps(of_rank, index, op.bytes)
                 : model_.link_work(of_rank, index, op.bytes);
}

/// What is wrong with an op of the rank that has `lanes`; empty: nothing.
std::string SimulationEngine::fault_of(const Op& op, std::span<const LanePoint> deps,
                                       const Lane* lanes) const {
  if (static_cast<uint32_t>(op.lane) >= lanes_per_rank_) {
    return fmt::format("there is no lane {}", op.lane);
  }
  if (is_transfer(op.kind) && static_cast<uint32_t>(op.peer) >= static_cast<uint32_t>(all_ranks_)) {
    return fmt::format("there is no rank {}", op.peer);
  }
  if (op.bytes < 0 || op.fixed_ps < 0) return "a size or time is negative";
  for (const LanePoint& dep : deps) {
    if (static_cast<uint32_t>(dep.lane) >= lanes_per_rank_ || dep.position < 0 ||
        dep.position >= lanes[dep.lane].fetched) {
      return fmt::format("it depends on number {} of lane {}, which is no earlier op", dep.position,
                         dep.lane);
    }
  }
  return {};
}

}  // namespace ring
