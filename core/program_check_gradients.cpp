// Gradients: every backward op's share comes home to the owner of its tokens exactly once.
#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "core/program_check_parts.h"

namespace ring::check {
namespace {

/// The ops in an order in which everything an op waits for stands before it; sends before their
/// receives. Shorter than the program when some ops wait for each other.
class Sequence {
 public:
  Sequence(const RingProgram& program, const Match& match) : program_(program), match_(match) {
    for (int rank = 0; rank < program.ranks(); ++rank) {
      first_.push_back(static_cast<int64_t>(waits_.size()));
      waits_.resize(waits_.size() + program.rank_programs[static_cast<size_t>(rank)].ops.size());
    }
    followers_.resize(waits_.size());
    for (int rank = 0; rank < program.ranks(); ++rank) link(rank);
    for (const auto& [send, receive] : match.receive_of) add_edge(number(send), number(receive));
  }

  std::vector<OpId> ordered() {
    std::vector<OpId> order;
    std::deque<int64_t> ready;
    for (size_t i = 0; i < waits_.size(); ++i) {
      if (waits_[i] == 0) ready.push_back(static_cast<int64_t>(i));
    }
    while (!ready.empty()) {
      const int64_t at = ready.front();
      ready.pop_front();
      const auto rank = std::upper_bound(first_.begin(), first_.end(), at) - first_.begin() - 1;
      order.push_back({static_cast<int32_t>(rank), at - first_[static_cast<size_t>(rank)]});
      for (const int64_t next : followers_[static_cast<size_t>(at)]) {
        if (--waits_[static_cast<size_t>(next)] == 0) ready.push_back(next);
      }
    }
    return order;
  }

 private:
  int64_t number(OpId id) const { return first_[static_cast<size_t>(id.rank)] + id.index; }

  void add_edge(int64_t from, int64_t to) {
    followers_[static_cast<size_t>(from)].push_back(to);
    ++waits_[static_cast<size_t>(to)];
  }

  void link(int rank) {
    const RankProgram& ops = program_.rank_programs[static_cast<size_t>(rank)];
    std::vector<std::vector<int64_t>> lanes(static_cast<size_t>(program_.lanes));
    for (size_t i = 0; i < ops.ops.size(); ++i) {
      const Op& op = ops.ops[i];
      const int64_t at = number({rank, static_cast<int64_t>(i)});
      auto& lane = lanes[static_cast<size_t>(op.lane)];
      if (!lane.empty()) add_edge(lane.back(), at);
      lane.push_back(at);
      for (const LanePoint& dep : ops.deps_of(op))
        add_edge(lanes[static_cast<size_t>(dep.lane)][static_cast<size_t>(dep.position)], at);
    }
  }

  const RingProgram& program_;
  const Match& match_;
  std::vector<int64_t> first_, waits_;
  std::vector<std::vector<int64_t>> followers_;
};

/// Follows the shares from buffer to buffer.
class Follower {
 public:
  Follower(const RingProgram& program, const Match& match, std::vector<Fault>& faults)
      : program_(program), match_(match), faults_(faults) {}

  void follow(const std::vector<OpId>& order) {
    for (const OpId id : order) visit(id);
    std::vector<OpId> wanted;
    for (const OpId id : order) {
      if (program_.op(id).kind == OpKind::kBackward) wanted.push_back(id);
    }
    std::sort(wanted.begin(), wanted.end());
    for (const OpId id : wanted) judge(id);
  }

 private:
  using Shares = std::vector<OpId>;

  Shares& shares(int32_t rank, int32_t buffer) { return buffers_[{rank, buffer}]; }

  void visit(OpId id) {
    const Op& op = program_.op(id);
    if (op.kind == OpKind::kBackward) {
      if (op.state == kHomeBuffer) return arrive(id, id.rank);
      // A block resets its own tokens; the first of a message finds what the last one left.
      if (op.buffer_begin == 0 && op.starts_state) shares(id.rank, op.state).clear();
      shares(id.rank, op.state).push_back(id);
    } else if (op.kind == OpKind::kAdd) {
      const Shares& source = shares(id.rank, op.source_state);
      if (op.state == kHomeBuffer) {
        for (const OpId share : source) arrive(share, id.rank);
      } else {
        Shares& sum = shares(id.rank, op.state);
        sum.insert(sum.end(), source.begin(), source.end());
      }
    } else if (op.kind == OpKind::kSend && is_gradient(op.payload)) {
      const auto receive = match_.receive_of.find(id);
      if (receive != match_.receive_of.end()) sent_[receive->second] = shares(id.rank, op.buffer);
    } else if (op.kind == OpKind::kReceive && is_gradient(op.payload)) {
      shares(id.rank, op.buffer) = std::move(sent_[id]);
    }
  }

  void arrive(OpId share, int32_t rank) {
    const Op& op = program_.op(share);
    const int32_t owner = op.payload == Payload::kKeyValue ? op.kv_shard : op.q_shard;
    if (owner == rank) ++arrived_[share];
  }

  void judge(OpId id) {
    const auto found = arrived_.find(id);
    const int64_t times = found == arrived_.end() ? 0 : found->second;
    if (times == 1) return;
    const bool is_lost = times == 0;
    faults_.push_back(
        {is_lost ? FaultKind::kGradientsLost : FaultKind::kGradientsRepeated,
         is_lost
             ? fmt::format("the gradients of {} never come home", describe(program_, id))
             : fmt::format("the gradients of {} come home {} times", describe(program_, id), times),
         {id}});
  }

  const RingProgram& program_;
  const Match& match_;
  std::vector<Fault>& faults_;
  std::map<std::pair<int32_t, int32_t>, Shares> buffers_;
  std::map<OpId, Shares> sent_;
  std::map<OpId, int64_t> arrived_;
};

}  // namespace

void check_gradients(const RingProgram& program, const Match& match, std::vector<Fault>& faults) {
  if (!program.has_attention || !has_backward(program.problem.pass)) return;
  const std::vector<OpId> order = Sequence(program, match).ordered();
  if (static_cast<int64_t>(order.size()) < program.op_count()) return;  // A deadlock.
  Follower(program, match, faults).follow(order);
}

}  // namespace ring::check
