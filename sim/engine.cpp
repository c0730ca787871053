#include "sim/engine.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"

namespace ring {

namespace {

constexpr int kMostLanes = 1 << 16;  // PackedPoint.

uint32_t checked_lanes(const ProgramSource& source) {
  if (source.ranks() < 1 || source.lanes() < 1 || source.lanes() >= kMostLanes) {
    throw_usage(fmt::format("a program of {} ranks with {} lanes cannot be simulated",
                            source.ranks(), source.lanes()),
                fmt::format("it needs a rank and a lane, and at most {} lanes", kMostLanes - 1));
  }
  return static_cast<uint32_t>(source.lanes());
}

}  // namespace

SimulationEngine::SimulationEngine(const ProgramSource& source, const Problem* problem,
                                   const Machine& machine, const SimulationOptions& options)
    : source_(source),
      options_(options),
      ranks_(source.ranks()),
      lanes_per_rank_(checked_lanes(source)),
      copies_(machine.transfer == TransferKind::kReceiverCopy),
      fluid_(events_, static_cast<uint32_t>(source.ranks()) * lanes_per_rank_),
      model_(machine, problem, source.ranks(), options, fluid_),
      interference_(machine, model_, source.ranks(), fluid_),
      recorder_(source.ranks(), source.lanes(), options.keep_timeline),
      feeds_(static_cast<size_t>(source.ranks())),
      lanes_(static_cast<size_t>(source.ranks()) * lanes_per_rank_) {
  events_.reserve_slots(lanes_.size());
  for (size_t i = 0; i < lanes_.size(); ++i) {
    lanes_[i].rank = static_cast<uint32_t>(i / lanes_per_rank_);
  }
}

SimulationResult SimulationEngine::run() {
  constexpr int64_t kEventsBetweenStopChecks = 4096;
  start_ranks();
  for (;;) {
    work_off_ready();
    if (!events_.empty() && events_.next_time_ps() == now_ps_) {
      handle(events_.pop());
      continue;
    }
    if (!fluid_.is_settled()) {
      fluid_.settle(now_ps_);
      continue;
    }
    if (events_.empty()) break;
    RING_ASSERT(events_.next_time_ps() > now_ps_);
    now_ps_ = events_.next_time_ps();
    if (event_count_ % kEventsBetweenStopChecks == 0 && options_.stop.stop_requested()) {
      throw Error(ErrorKind::kInterrupted, "the simulation was stopped");
    }
  }
  check_finished();
  return result();
}

void SimulationEngine::start_ranks() {
  for (int rank = 0; rank < ranks_; ++rank) {
    feeds_[static_cast<size_t>(rank)].stream = source_.stream(rank);
    if (model_.start_ps(rank) == 0) {
      start_rank(rank);
    } else {
      // The first lane stands for the rank; its state tells the event what to do.
      const uint32_t first = static_cast<uint32_t>(rank) * lanes_per_rank_;
      lane_at(first).state = LaneState::kIdle;
      events_.schedule(first, model_.start_ps(rank));
    }
  }
}

void SimulationEngine::start_rank(int rank) {
  const uint32_t first = static_cast<uint32_t>(rank) * lanes_per_rank_;
  for (uint32_t lane = first; lane < first + lanes_per_rank_; ++lane) {
    lane_at(lane).state = LaneState::kFree;
    ready_.push_back(lane);
  }
}

void SimulationEngine::handle(EventQueue::Slot slot) {
  ++event_count_;
  if (slot >= lanes_.size()) {
    finished_.clear();
    fluid_.advance(static_cast<int>(slot - lanes_.size()), now_ps_, finished_);
    for (const Fluid::Token token : finished_) end_work(token);
    return;
  }
  Lane& lane = lane_at(slot);
  switch (lane.state) {
    case LaneState::kIdle:
      start_rank(static_cast<int>(lane.rank));
      break;
    case LaneState::kWaking:
      post(slot);
      break;
    case LaneState::kRunning:
      end_compute(slot);
      break;
    case LaneState::kWakingToCopy:
      begin_copy(lane.message);
      break;
    case LaneState::kWakingDone:
      reach_next_point(slot);
      break;
    case LaneState::kFree:
    case LaneState::kNeedsDeps:
    case LaneState::kPosted:
      RING_ASSERT(false);
  }
}

void SimulationEngine::work_off_ready() {
  while (!ready_.empty()) {
    const uint32_t lane = ready_.back();
    ready_.pop_back();
    if (lane_at(lane).state == LaneState::kFree) {
      take_next(lane);
    } else {
      check_deps(lane);
    }
  }
}

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
  const int64_t index = feeds_[rank].fetched++;
  const auto first = rank * lanes_per_rank_;
  const auto name_op = [&] { return fmt::format("op r{}:{} ({})", rank, index, name(op.kind)); };
  if (op.lane < 0 || static_cast<uint32_t>(op.lane) >= lanes_per_rank_) {
    throw_usage(fmt::format("{}: there is no lane {}", name_op(), op.lane));
  }
  const bool is_transfer = op.kind == OpKind::kSend || op.kind == OpKind::kReceive;
  if (is_transfer && (op.peer < 0 || op.peer >= ranks_)) {
    throw_usage(fmt::format("{}: there is no rank {}", name_op(), op.peer));
  }
  if (op.bytes < 0 || op.fixed_ps < 0) {
    throw_usage(fmt::format("{}: a size or time is negative", name_op()));
  }
  Lane& lane = lane_at(first + static_cast<uint32_t>(op.lane));
  for (const LanePoint& dep : deps) {
    if (dep.lane < 0 || static_cast<uint32_t>(dep.lane) >= lanes_per_rank_ || dep.position < 0 ||
        dep.position >= lane_at(first + static_cast<uint32_t>(dep.lane)).fetched) {
      throw_usage(fmt::format("{}: depends on number {} of lane {}, which is no earlier op",
                              name_op(), dep.position, dep.lane));
    }
    lane.queue.deps.push(PackedPoint::of(dep));
  }
  ++lane.fetched;
  PendingOp pending;
  const int of_rank = static_cast<int>(rank);
  if (!is_transfer) {
    pending.work = model_.compute_work_ps(of_rank, index, op);
  } else if (copies_) {
    pending.work = model_.copy_work_ps(of_rank, index, op.bytes);
  } else {
    pending.work = model_.link_work(of_rank, index, op.bytes);
  }
  pending.message = op.message;
  pending.index = index;
  pending.bytes = op.bytes;
  pending.flops = op.flops;
  pending.peer = op.peer;
  pending.step = op.step;
  pending.kv_shard = op.kv_shard;
  pending.dep_count = static_cast<uint32_t>(deps.size());
  pending.kind = op.kind;
  pending.protocol = op.protocol;
  lane.queue.ops.push(pending);
}

void SimulationEngine::take_next(uint32_t number) {
  Lane& lane = lane_at(number);
  while (lane.queue.ops.empty()) {
    if (!fetch(lane.rank)) {
      lane.state = LaneState::kIdle;
      return;
    }
  }
  lane.next_dep = 0;
  lane.has_waited = false;
  check_deps(number);
}

void SimulationEngine::check_deps(uint32_t number) {
  Lane& lane = lane_at(number);
  const uint32_t first = lane.rank * lanes_per_rank_;
  const uint32_t count = lane.queue.ops.front().dep_count;
  for (; lane.next_dep < count; ++lane.next_dep) {
    const PackedPoint point = lane.queue.deps[lane.next_dep];
    if (lane_at(first + point.lane()).done > point.position()) continue;
    wait_for(number, first + point.lane(), point.position());
    return;
  }
  if (lane.has_waited && model_.wakeup_ps() > 0) {
    lane.state = LaneState::kWaking;
    events_.schedule(number, now_ps_ + model_.wakeup_ps());
    return;
  }
  post(number);
}

void SimulationEngine::wait_for(uint32_t number, uint32_t awaited, int64_t position) {
  Lane& lane = lane_at(number);
  lane.state = LaneState::kNeedsDeps;
  lane.has_waited = true;
  lane.awaited_position = position;
  lane.next_waiter = lane_at(awaited).first_waiter;
  lane_at(awaited).first_waiter = number;
}

void SimulationEngine::complete(uint32_t number) {
  record(lane_at(number), number);
  reach_next_point(number);
}

void SimulationEngine::record(const Lane& lane, uint32_t number) {
  const PendingOp& op = lane.queue.ops.front();
  Slice slice;
  slice.op = {static_cast<int32_t>(lane.rank), op.index};
  slice.kind = op.kind;
  slice.lane = static_cast<int32_t>(number - lane.rank * lanes_per_rank_);
  slice.step = op.step;
  slice.peer = op.peer;
  slice.kv_shard = op.kv_shard;
  slice.bytes = op.bytes;
  slice.flops = op.flops;
  slice.posted_ps = lane.posted_ps;
  slice.start_ps = lane.start_ps;
  slice.end_ps = now_ps_;
  recorder_.add(slice);
}

/// The op of the lane is done: those that wait for it may go on, and so may the lane.
void SimulationEngine::reach_next_point(uint32_t number) {
  Lane& lane = lane_at(number);
  ++op_count_;
  ++lane.done;
  lane.queue.deps.pop(lane.queue.ops.front().dep_count);
  lane.queue.ops.pop();
  uint32_t* link = &lane.first_waiter;
  while (*link != kNone) {
    Lane& waiter = lane_at(*link);
    if (waiter.awaited_position < lane.done) {
      ready_.push_back(*link);
      *link = waiter.next_waiter;
    } else {
      link = &waiter.next_waiter;
    }
  }
  lane.state = LaneState::kFree;
  ready_.push_back(number);
}

SimulationResult SimulationEngine::result() {
  SimulationResult result;
  result.metrics = recorder_.metrics();
  result.makespan_ps = recorder_.makespan_ps();
  result.timeline = recorder_.take_timeline();
  result.ops = op_count_;
  result.messages = message_count_;
  result.events = event_count_;
  result.solved_groups = fluid_.solved_groups();
  result.simulated_ranks = ranks_;
  result.notes = model_.notes();
  std::vector<Bytes> carried(model_.topology().links().size(), 0);
  for (const Channel& channel : channels_) {
    for (const int link : channel.links) carried[static_cast<size_t>(link)] += channel.carried;
  }
  for (size_t i = 0; i < carried.size(); ++i) {
    if (carried[i] == 0) continue;
    const double could =
        model_.topology().links()[i].bytes_per_s * seconds_from_picoseconds(result.makespan_ps);
    result.links.push_back(
        {static_cast<int>(i), carried[i], could > 0 ? static_cast<double>(carried[i]) / could : 0});
  }
  return result;
}

}  // namespace ring
