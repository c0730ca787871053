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
                                   const Machine& machine, const SimulationOptions& options,
                                   const Fold* fold)
    : source_(source),
      options_(options),
      ranks_(source.ranks()),
      all_ranks_(fold != nullptr ? fold->ranks : source.ranks()),
      fold_(fold),
      lanes_per_rank_(checked_lanes(source)),
      copies_(machine.transfer == TransferKind::kReceiverCopy),
      fluid_(events_, static_cast<uint32_t>(source.ranks()) * lanes_per_rank_),
      model_(machine, problem, source.ranks(), options, fold, fluid_),
      interference_(machine, model_, source.ranks(), fluid_),
      recorder_(source.ranks(), source.lanes(), options.keep_timeline),
      feeds_(static_cast<size_t>(source.ranks())),
      lanes_(static_cast<size_t>(source.ranks()) * lanes_per_rank_),
      lane_groups_(lanes_.size()),
      ops_(options.keep_timeline) {
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
      const EventQueue::Slot slot = events_.pop();
      prefetch_next();
      handle(slot);
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

void SimulationEngine::take_next(uint32_t number) {
  Lane& lane = lane_at(number);
  while (lane.first_op == kNone) {
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
  const std::span<const PackedPoint> deps = ops_.deps(op_of(lane));
  for (; lane.next_dep < deps.size(); ++lane.next_dep) {
    const PackedPoint point = deps[lane.next_dep];
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
  lane_at(awaited).first_waiter = static_cast<uint16_t>(number - lane.rank * lanes_per_rank_);
}

void SimulationEngine::complete(uint32_t number) {
  if (recorder_.keeps_timeline()) record(number);
  reach_next_point(number);
}

/// The op of the lane starts now: computation, or the transfer after the wait for the peer.
void SimulationEngine::start_op(const Lane& lane) {
  if (recorder_.keeps_timeline()) ops_.details(lane.first_op).start_ps = now_ps_;
}

void SimulationEngine::record(uint32_t number) {
  const Lane& lane = lane_at(number);
  const PendingOp& op = op_of(lane);
  const OpDetails& details = ops_.details(lane.first_op);
  Slice slice;
  slice.op = {static_cast<int32_t>(lane.rank), details.index};
  slice.kind = op.kind();
  slice.lane = static_cast<int32_t>(number - lane.rank * lanes_per_rank_);
  slice.step = details.step;
  slice.peer = op.peer;
  slice.kv_shard = details.kv_shard;
  slice.bytes = op.bytes;
  slice.flops = details.flops;
  slice.posted_ps = details.posted_ps;
  slice.start_ps = details.start_ps;
  slice.end_ps = now_ps_;
  recorder_.add(slice);
}

/// The op of the lane is done: those that wait for it may go on, and so may the lane.
void SimulationEngine::reach_next_point(uint32_t number) {
  Lane& lane = lane_at(number);
  const uint32_t first = lane.rank * lanes_per_rank_;
  ++op_count_;
  ++lane.done;
  const uint32_t slot = lane.first_op;
  lane.first_op = ops_[slot].next;
  if (lane.first_op != kNone) __builtin_prefetch(&ops_[lane.first_op]);
  ops_.give_back(slot);
  uint16_t* link = &lane.first_waiter;
  while (*link != kNoLane) {
    Lane& waiter = lane_at(first + *link);
    if (waiter.awaited_position < lane.done) {
      ready_.push_back(first + *link);
      *link = waiter.next_waiter;
    } else {
      link = &waiter.next_waiter;
    }
  }
  lane.state = LaneState::kFree;
  ready_.push_back(number);
}

/// What the next event will touch comes into the cache meanwhile, and for those after it the first
/// steps towards that.
void SimulationEngine::prefetch_next() const {
  if (events_.empty()) return;
  const auto lane_count = static_cast<EventQueue::Slot>(lanes_.size());
  events_.visit_soon([&](EventQueue::Slot slot) {
    if (slot < lane_count) {
      __builtin_prefetch(&lanes_[slot]);
    } else {
      prefetch_flow_end(fluid_.first_to_end(static_cast<int>(slot - lane_count)));
    }
  });
  const EventQueue::Slot next = events_.next_slot();
  if (next < lane_count) {
    prefetch_lane_end(next);
    return;
  }
  const Fluid::Token token = fluid_.first_to_end(static_cast<int>(next - lane_count));
  if (token == Fluid::kNoToken) return;
  if (token < lane_count) {
    prefetch_lane_end(token);
    return;
  }
  const Message& message = messages_[token - lane_count];
  if (message.sender != kNone) prefetch_lane_end(message.sender);
  if (message.receiver != kNone) prefetch_lane_end(message.receiver);
}

void SimulationEngine::prefetch_lane_end(uint32_t number) const {
  const Lane& lane = lanes_[number];
  __builtin_prefetch(&ops_[lane.first_op]);
  __builtin_prefetch(&lanes_[lane.rank * lanes_per_rank_]);
  recorder_.prefetch(static_cast<int>(lane.rank));
}

void SimulationEngine::prefetch_flow_end(Fluid::Token token) const {
  if (token == Fluid::kNoToken) return;
  fluid_.prefetch_flow(token);
  if (token < lanes_.size()) {
    __builtin_prefetch(&lanes_[token]);
  } else {
    __builtin_prefetch(&messages_[token - lanes_.size()]);
  }
}

SimulationResult SimulationEngine::result() {
  const int64_t copies = all_ranks_ / ranks_;
  SimulationResult result;
  result.metrics = recorder_.metrics(flops_, bytes_sent_, all_ranks_);
  result.makespan_ps = result.metrics.makespan_ps;
  result.timeline = recorder_.take_timeline();
  result.ops = op_count_ * copies;
  result.messages = message_count_ * copies;
  result.events = event_count_;
  result.solved_groups = fluid_.solved_groups();
  result.simulated_ranks = ranks_;
  result.notes = model_.notes();
  result.links = link_uses(result.makespan_ps);
  return result;
}

std::vector<LinkUse> SimulationEngine::link_uses(Picoseconds makespan_ps) const {
  const Topology& topology = model_.topology();
  std::vector<Bytes> carried(topology.links().size(), 0);
  for (size_t i = 0; i < channels_.size(); ++i) {
    for (const int link : paths_[i].links) {
      carried[static_cast<size_t>(link)] += channels_[i].carried;
    }
  }
  if (fold_ != nullptr) unfold(*fold_, carried);
  std::vector<LinkUse> uses;
  for (size_t i = 0; i < carried.size(); ++i) {
    if (carried[i] == 0) continue;
    const double could = topology.links()[i].bytes_per_s * seconds_from_picoseconds(makespan_ps);
    uses.push_back(
        {static_cast<int>(i), carried[i], could > 0 ? static_cast<double>(carried[i]) / could : 0});
  }
  return uses;
}

}  // namespace ring
