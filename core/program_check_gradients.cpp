// Gradients: every backward op's share comes home to the owner of its tokens exactly once.
#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "core/payload.h"
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

/// What a backward op adds to the gradients of its keys or of its rows.
struct Share {
  OpId op;
  bool is_of_keys = true;
  auto operator<=>(const Share&) const = default;
};

/// A share, or the part of it that belongs to one shard of a group.
struct Part {
  Share share;
  int32_t only = -1;
};
using Parts = std::vector<Part>;

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
    for (const OpId id : wanted) {
      if (!judge({id, true})) continue;
      judge({id, false});
    }
  }

 private:
  Parts& parts(int32_t rank, int32_t buffer) { return buffers_[{rank, buffer}]; }
  static int32_t shard_of(const Op& op, bool is_of_keys) {
    return is_of_keys ? op.kv_shard : op.q_shard;
  }

  void visit(OpId id) {
    const Op& op = program_.op(id);
    if (op.kind == OpKind::kDelta && op.starts_state) {
      if (op.state != kHomeBuffer) parts(id.rank, op.state).clear();
      if (op.source_state != kHomeBuffer) parts(id.rank, op.source_state).clear();
    } else if (op.kind == OpKind::kBackward) {
      // A block resets its own tokens; the first of a message finds what the last one left.
      if (op.buffer_begin == 0 && op.starts_state && op.state != kHomeBuffer)
        parts(id.rank, op.state).clear();
      const bool keys_move = op.payload == Payload::kKeyValue;
      put({{id, keys_move}}, id.rank, op.state);
      put({{id, !keys_move}}, id.rank, op.source_state);
    } else if (op.kind == OpKind::kAdd) {
      put(of_shard(id, op.source_state), id.rank, op.state);
    } else if (!is_gradient(op.payload)) {
      return;
    } else if (op.kind == OpKind::kCopy) {
      if (op.buffer == kHomeBuffer) {
        overwrite_home(id);
      } else {
        parts(id.rank, op.buffer).clear();
      }
      put(of_shard(id, op.source_buffer), id.rank, op.buffer);
    } else if (op.kind == OpKind::kSend) {
      const auto receive = match_.receive_of.find(id);
      if (receive != match_.receive_of.end()) sent_[receive->second] = of_shard(id, op.buffer);
    } else if (op.kind == OpKind::kReceive) {
      parts(id.rank, op.buffer) = std::move(sent_[id]);
    }
  }

  /// What a buffer holds for the shard or group that the op names.
  Parts of_shard(OpId id, int32_t buffer) {
    const Op& op = program_.op(id);
    const bool is_of_keys = op.payload == Payload::kKeyGradients && op.kind != OpKind::kCopy;
    const int32_t shard = shard_of(op, is_of_keys);
    Parts found;
    for (Part part : parts(id.rank, buffer)) {
      if (shard < program_.partition.ranks() && is_of_group(part.share)) {
        if (part.only >= 0 && part.only != shard) continue;
        part.only = shard;
      }
      found.push_back(part);
    }
    return found;
  }

  bool is_of_group(const Share& share) const {
    return shard_of(program_.op(share.op), share.is_of_keys) >= program_.partition.ranks();
  }

  void put(const Parts& added, int32_t rank, int32_t buffer) {
    if (buffer == kHomeBuffer || is_end(rank, buffer)) {
      for (const Part& part : added) arrive(part, rank);
    } else {
      Parts& held = parts(rank, buffer);
      held.insert(held.end(), added.begin(), added.end());
    }
  }

  /// Gradients of inputs that lie split by heads end where the inputs lie.
  bool is_end(int32_t rank, int32_t buffer) const {
    const RankStorage& storage = program_.rank_programs[static_cast<size_t>(rank)].storage;
    if (!is_shaped_buffer(storage, Payload::kKeyGradients, buffer)) return false;
    return storage.shaped_buffers[static_cast<size_t>(buffer - storage.buffers)].filled_with >= 0;
  }

  void arrive(const Part& part, int32_t rank) {
    if (!is_of_group(part.share)) {
      if (shard_of(program_.op(part.share.op), part.share.is_of_keys) == rank)
        ++arrived_[{part.share, rank}];
    } else if (part.only < 0) {
      for (const int32_t owner : owners(part.share)) ++arrived_[{part.share, owner}];
    } else if (part.only == rank) {
      ++arrived_[{part.share, rank}];
    }
  }

  /// A copy must be the first to bring these heads.
  void overwrite_home(OpId id) {
    const Op& op = program_.op(id);
    const HeadRange heads = heads_in(program_.problem, op.payload,
                                     query_heads(program_.problem, op.head_begin, op.head_end));
    std::vector<HeadRange>& there = at_home_[{id.rank, op.payload}];
    for (const HeadRange& other : there) {
      if (other.begin >= heads.end || heads.begin >= other.end) continue;
      faults_.push_back(
          {FaultKind::kGradientsLost,
           fmt::format("{} overwrites gradients that are at home already", describe(program_, id)),
           {id}});
      return;
    }
    there.push_back(heads);
  }

  /// The ranks that hold the tokens of the share.
  std::vector<int32_t> owners(const Share& share) const {
    const Op& op = program_.op(share.op);
    const int32_t shard = shard_of(op, share.is_of_keys);
    if (!is_of_group(share)) return {shard};
    const TokenRanges tokens =
        slice(program_.tokens_of(shard), share.is_of_keys ? op.kv_begin : op.q_begin,
              share.is_of_keys ? op.kv_end : op.q_end);
    std::vector<int32_t> found;
    for (int32_t rank = 0; rank < program_.partition.ranks(); ++rank) {
      if (holds_any(program_.partition.shard(rank), tokens)) found.push_back(rank);
    }
    return found;
  }

  static bool holds_any(const TokenRanges& shard, const TokenRanges& tokens) {
    for (const AffineRange& range : tokens) {
      for (int64_t i = 0; i < range.count; ++i) {
        if (index_of(shard, range.position(i)) >= 0) return true;
      }
    }
    return false;
  }

  /// False when it found a fault.
  bool judge(const Share& share) {
    for (const int32_t owner : owners(share)) {
      const auto found = arrived_.find({share, owner});
      const int64_t times = found == arrived_.end() ? 0 : found->second;
      if (times == 1) continue;
      const std::string what = describe(program_, share.op);
      if (times == 0) {
        faults_.push_back({FaultKind::kGradientsLost,
                           fmt::format("the gradients of {} never come home", what),
                           {share.op}});
      } else {
        faults_.push_back({FaultKind::kGradientsRepeated,
                           fmt::format("the gradients of {} come home {} times", what, times),
                           {share.op}});
      }
      return false;
    }
    return true;
  }

  const RingProgram& program_;
  const Match& match_;
  std::vector<Fault>& faults_;
  std::map<std::pair<int32_t, int32_t>, Parts> buffers_;
  std::map<std::pair<int32_t, Payload>, std::vector<HeadRange>> at_home_;
  std::map<OpId, Parts> sent_;
  std::map<std::pair<Share, int32_t>, int64_t> arrived_;
};

}  // namespace

void check_gradients(const RingProgram& program, const Match& match, std::vector<Fault>& faults) {
  if (!program.has_attention || !has_backward(program.problem.pass)) return;
  const std::vector<OpId> order = Sequence(program, match).ordered();
  if (static_cast<int64_t>(order.size()) < program.op_count()) return;  // A deadlock.
  Follower(program, match, faults).follow(order);
}

}  // namespace ring::check
