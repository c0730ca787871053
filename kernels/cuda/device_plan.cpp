#include "kernels/cuda/device_plan.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "core/error.h"

namespace ring::cuda {
namespace {

/// How many commands of every stream are known to be done.
using Clock = std::vector<int64_t>;

void join(Clock& clock, const Clock& other) {
  for (size_t i = 0; i < clock.size(); ++i) clock[i] = std::max(clock[i], other[i]);
}

/// Where an op is done: after this many commands of a stream.
struct Completion {
  int stream = -1;
  int64_t count = 0;
  Clock clock;         ///< What is known there.
  size_t command = 0;  ///< The command that it follows.
  bool is_done() const { return stream >= 0; }
};

class Planner {
 public:
  Planner(const RingProgram& program, Carrier carrier);
  DevicePlan run();

 private:
  struct Lane {
    std::vector<int64_t> ops;  ///< Indices into the ops of the rank.
    size_t next = 0;
  };

  Lane& lane(int rank, int number) {
    return lanes_[static_cast<size_t>(rank * program_.lanes + number)];
  }
  const Completion& done(OpId id) const {
    return done_[static_cast<size_t>(id.rank)][static_cast<size_t>(id.index)];
  }
  /// What must be done before the op: the op before it in its lane, and its deps.
  std::vector<OpId> needs(OpId id);
  bool is_ready(OpId id);
  bool advance_lane(int rank, int number);
  bool advance_pair(OpId send, OpId receive);
  bool exchange_ready_pairs();
  std::vector<ExchangeOp> ready_pairs();
  OpId partner(OpId id) const;
  /// Waits in `stream` for what `needed` says, unless it is known; then puts the command there.
  void emit(int stream, Command command, const std::vector<OpId>& needed,
            std::span<const OpId> completes);
  /// The ops are done after the last command, which is one of `stream`.
  void complete(int stream, std::span<const OpId> ops);
  void wait_for(int stream, const std::vector<OpId>& needed);
  const Op& op(OpId id) const { return program_.op(id); }
  /// Gives events to the commands that are waited for.
  DevicePlan with_records() const;

  const RingProgram& program_;
  Carrier carrier_;
  DevicePlan plan_;
  std::vector<Lane> lanes_;
  std::vector<std::vector<Completion>> done_;
  std::vector<Clock> clocks_;                                       ///< By stream.
  std::map<std::tuple<int, int, int64_t>, OpId> sends_, receives_;  ///< By source, dest, message.
  std::vector<Completion> awaited_;  ///< By the event number of the waits so far.
};

Planner::Planner(const RingProgram& program, Carrier carrier)
    : program_(program), carrier_(carrier) {
  plan_.streams = program.ranks() * (program.lanes + 1);
  lanes_.resize(static_cast<size_t>(program.ranks() * program.lanes));
  clocks_.assign(static_cast<size_t>(plan_.streams), Clock(static_cast<size_t>(plan_.streams)));
  for (int rank = 0; rank < program.ranks(); ++rank) {
    const std::vector<Op>& ops = program.rank_programs[static_cast<size_t>(rank)].ops;
    done_.emplace_back(ops.size());
    for (size_t i = 0; i < ops.size(); ++i) {
      const OpId id{rank, static_cast<int64_t>(i)};
      lane(rank, ops[i].lane).ops.push_back(id.index);
      if (ops[i].kind == OpKind::kSend) sends_[{rank, ops[i].peer, ops[i].message}] = id;
      if (ops[i].kind == OpKind::kReceive) receives_[{ops[i].peer, rank, ops[i].message}] = id;
      if (ops[i].kind == OpKind::kSend && ops[i].protocol == Protocol::kEager &&
          carrier == Carrier::kExchanges)
        throw Error(ErrorKind::kUnavailable, "eager messages cannot be carried between processes",
                    "use rendezvous, or ranks of one process with copies");
    }
  }
}

OpId Planner::partner(OpId id) const {
  const Op& own = op(id);
  const auto& others = own.kind == OpKind::kSend ? receives_ : sends_;
  const int source = own.kind == OpKind::kSend ? id.rank : own.peer;
  const int destination = own.kind == OpKind::kSend ? own.peer : id.rank;
  return others.at({source, destination, own.message});
}

std::vector<OpId> Planner::needs(OpId id) {
  std::vector<OpId> needed;
  const Op& own = op(id);
  const RankProgram& rank = program_.rank_programs[static_cast<size_t>(id.rank)];
  if (own.lane_position > 0)
    needed.push_back(
        {id.rank, lane(id.rank, own.lane).ops[static_cast<size_t>(own.lane_position - 1)]});
  for (const LanePoint& point : rank.deps_of(own))
    needed.push_back({id.rank, lane(id.rank, point.lane).ops[static_cast<size_t>(point.position)]});
  return needed;
}

bool Planner::is_ready(OpId id) {
  const Lane& own = lane(id.rank, op(id).lane);
  if (own.next != static_cast<size_t>(op(id).lane_position)) return false;
  const std::vector<OpId> needed = needs(id);
  return std::all_of(needed.begin(), needed.end(), [&](OpId it) { return done(it).is_done(); });
}

void Planner::wait_for(int stream, const std::vector<OpId>& needed) {
  Clock& clock = clocks_[static_cast<size_t>(stream)];
  std::vector<const Completion*> open;
  for (const OpId id : needed) {
    const Completion& completion = done(id);
    if (completion.stream == stream) continue;
    if (clock[static_cast<size_t>(completion.stream)] >= completion.count) continue;
    open.push_back(&completion);
  }
  // One of them may bring the knowledge of another.
  const auto is_implied = [&](const Completion* one) {
    return std::any_of(open.begin(), open.end(), [&](const Completion* other) {
      const bool is_other = other->stream != one->stream || other->count > one->count;
      return is_other && other->clock[static_cast<size_t>(one->stream)] >= one->count;
    });
  };
  std::vector<const Completion*> waited;
  for (const Completion* one : open) {
    const bool is_twice = std::any_of(waited.begin(), waited.end(), [&](const Completion* other) {
      return other->stream == one->stream && other->count == one->count;
    });
    if (!is_implied(one) && !is_twice) waited.push_back(one);
  }
  for (const Completion* one : waited) {
    join(clock, one->clock);
    Command command;
    command.kind = CommandKind::kWait;
    command.stream = stream;
    command.event = static_cast<int32_t>(awaited_.size());
    awaited_.push_back(*one);
    plan_.commands.push_back(command);
  }
}

void Planner::complete(int stream, std::span<const OpId> ops) {
  Clock& clock = clocks_[static_cast<size_t>(stream)];
  const int64_t count = ++clock[static_cast<size_t>(stream)];
  for (const OpId id : ops) {
    done_[static_cast<size_t>(id.rank)][static_cast<size_t>(id.index)] = {
        stream, count, clock, plan_.commands.size() - 1};
    ++lane(id.rank, op(id).lane).next;
  }
}

void Planner::emit(int stream, Command command, const std::vector<OpId>& needed,
                   std::span<const OpId> completes) {
  wait_for(stream, needed);
  command.stream = stream;
  plan_.commands.push_back(command);
  complete(stream, completes);
}

bool Planner::advance_pair(OpId send, OpId receive) {
  const int to = lane_stream(program_, receive.rank, op(receive).lane);
  if (op(send).protocol == Protocol::kEager) {
    if (!done(send).is_done() && is_ready(send)) {
      Command stage;
      stage.kind = CommandKind::kStage;
      stage.op = receive;
      stage.send = send;
      emit(lane_stream(program_, send.rank, op(send).lane), stage, needs(send), {{send}});
      return true;
    }
    if (!done(send).is_done() || !is_ready(receive)) return false;
    std::vector<OpId> needed = needs(receive);
    needed.push_back(send);
    Command deliver;
    deliver.kind = CommandKind::kDeliver;
    deliver.op = receive;
    deliver.send = send;
    emit(to, deliver, needed, {{receive}});
    return true;
  }
  if (!is_ready(send) || !is_ready(receive)) return false;
  std::vector<OpId> needed = needs(receive);
  const std::vector<OpId> of_send = needs(send);
  needed.insert(needed.end(), of_send.begin(), of_send.end());
  Command copy;
  copy.kind = CommandKind::kCopy;
  copy.op = receive;
  copy.send = send;
  const OpId completes[] = {send, receive};
  emit(to, copy, needed, completes);
  return true;
}

bool Planner::advance_lane(int rank, int number) {
  bool has_moved = false;
  for (Lane& own = lane(rank, number); own.next < own.ops.size();) {
    const OpId id{rank, own.ops[own.next]};
    const OpKind kind = op(id).kind;
    if (kind == OpKind::kSend || kind == OpKind::kReceive) {
      if (carrier_ == Carrier::kExchanges) return has_moved;
      const OpId other = partner(id);
      const bool is_send = kind == OpKind::kSend;
      if (!advance_pair(is_send ? id : other, is_send ? other : id)) return has_moved;
    } else {
      if (!is_ready(id)) return has_moved;
      Command compute;
      compute.op = id;
      emit(lane_stream(program_, rank, number), compute, needs(id), {{id}});
    }
    has_moved = true;
  }
  return has_moved;
}

std::vector<ExchangeOp> Planner::ready_pairs() {
  std::vector<ExchangeOp> pairs;
  for (const auto& [key, send] : sends_) {
    if (done(send).is_done() || !is_ready(send)) continue;
    const OpId receive = receives_.at(key);
    if (is_ready(receive)) pairs.push_back({send, receive});
  }
  return pairs;
}

bool Planner::exchange_ready_pairs() {
  const std::vector<ExchangeOp> pairs = ready_pairs();
  if (pairs.empty()) return false;
  std::map<int, std::vector<OpId>> by_rank;
  for (const ExchangeOp& pair : pairs) {
    for (const OpId id : {pair.send, pair.receive}) by_rank[id.rank].push_back(id);
  }
  for (const auto& [rank, ops] : by_rank) {
    std::vector<OpId> needed;
    for (const OpId id : ops) {
      const std::vector<OpId> of_op = needs(id);
      needed.insert(needed.end(), of_op.begin(), of_op.end());
    }
    wait_for(exchange_stream(program_, rank), needed);
  }
  Command command;
  command.kind = CommandKind::kExchange;
  command.exchange = static_cast<int32_t>(plan_.exchanges.size());
  plan_.commands.push_back(command);
  plan_.exchanges.push_back(pairs);
  for (const auto& [rank, ops] : by_rank) complete(exchange_stream(program_, rank), ops);
  return true;
}

DevicePlan Planner::with_records() const {
  DevicePlan plan;
  plan.streams = plan_.streams;
  plan.exchanges = plan_.exchanges;
  std::map<std::pair<size_t, int>, int32_t> events;  // By the command and stream waited for.
  for (const Completion& one : awaited_)
    events.try_emplace({one.command, one.stream}, static_cast<int32_t>(events.size()));
  for (size_t i = 0; i < plan_.commands.size(); ++i) {
    Command command = plan_.commands[i];
    if (command.kind == CommandKind::kWait) {
      const Completion& one = awaited_[static_cast<size_t>(command.event)];
      command.event = events.at({one.command, one.stream});
    }
    plan.commands.push_back(command);
    for (auto it = events.lower_bound({i, 0}); it != events.end() && it->first.first == i; ++it) {
      Command record;
      record.kind = CommandKind::kRecord;
      record.stream = it->first.second;
      record.event = it->second;
      plan.commands.push_back(record);
    }
  }
  plan.events = static_cast<int>(events.size());
  return plan;
}

DevicePlan Planner::run() {
  for (bool has_moved = true; has_moved;) {
    has_moved = false;
    for (int rank = 0; rank < program_.ranks(); ++rank) {
      for (int number = 0; number < program_.lanes; ++number)
        has_moved = advance_lane(rank, number) || has_moved;
    }
    if (carrier_ == Carrier::kExchanges) has_moved = exchange_ready_pairs() || has_moved;
  }
  for (const Lane& own : lanes_) {
    if (own.next != own.ops.size())
      throw Error(ErrorKind::kUnavailable, "the program cannot be called from one host thread",
                  "ringscope check shows who waits for whom");
  }
  return with_records();
}

}  // namespace

DevicePlan plan_device(const RingProgram& program, Carrier carrier) {
  return Planner(program, carrier).run();
}

}  // namespace ring::cuda
