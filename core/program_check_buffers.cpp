// Buffers: nothing is overwritten while it may be read, and everybody reads what is there.
#include <fmt/format.h>

#include "core/program_check_parts.h"

namespace ring::check {
namespace {

/// For every op of a rank the number of ops of each lane that are surely done before it starts, by
/// lane order and deps of the same rank. Order that comes only through other ranks is not counted.
class Order {
 public:
  Order(const RankProgram& program, int lanes) : lanes_(static_cast<size_t>(lanes)) {
    std::vector<std::vector<size_t>> index_of(lanes_);
    before_.assign(program.ops.size() * lanes_, 0);
    for (size_t i = 0; i < program.ops.size(); ++i) {
      const Op& op = program.ops[i];
      auto& lane = index_of[static_cast<size_t>(op.lane)];
      if (!lane.empty()) join(i, lane.back(), op.lane, op.lane_position);
      for (const LanePoint& dep : program.deps_of(op)) {
        join(i, index_of[static_cast<size_t>(dep.lane)][static_cast<size_t>(dep.position)],
             dep.lane, dep.position + 1);
      }
      lane.push_back(i);
    }
  }

  /// Whether `first` is surely done before op number `then` starts.
  bool is_before(const Op& first, size_t then) const {
    return before_[then * lanes_ + static_cast<size_t>(first.lane)] > first.lane_position;
  }

 private:
  void join(size_t op, size_t earlier, int32_t lane, int64_t done) {
    for (size_t i = 0; i < lanes_; ++i) {
      before_[op * lanes_ + i] = std::max(before_[op * lanes_ + i], before_[earlier * lanes_ + i]);
    }
    int64_t& own = before_[op * lanes_ + static_cast<size_t>(lane)];
    own = std::max(own, done);
  }

  size_t lanes_;
  std::vector<int64_t> before_;
};

struct Contents {
  const Op* written_by = nullptr;
  std::vector<const Op*> readers;
};

class RankChecker {
 public:
  RankChecker(const RingProgram& program, int rank, std::vector<Fault>& faults)
      : program_(program),
        ops_(program.rank_programs[static_cast<size_t>(rank)]),
        rank_(rank),
        order_(ops_, program.lanes),
        faults_(faults) {}

  void check() {
    for (size_t i = 0; i < ops_.ops.size(); ++i) {
      const Op& op = ops_.ops[i];
      if (op.kind == OpKind::kReceive && op.buffer != kHomeBuffer) {
        write(op, i);
      } else if (op.kind == OpKind::kAttend || op.kind == OpKind::kSend) {
        op.buffer == kHomeBuffer ? read_home(op, i) : read(op, i);
      }
    }
  }

 private:
  void add(FaultKind kind, size_t op, std::string_view reason, const Op* other = nullptr) {
    const OpId id{rank_, static_cast<int64_t>(op)};
    std::string text = fmt::format("{} {}", describe(program_, id), reason);
    std::vector<OpId> ids{id};
    if (other != nullptr) {
      ids.push_back({rank_, other - ops_.ops.data()});
      text += " " + describe(program_, ids.back());
    }
    faults_.push_back({kind, std::move(text), std::move(ids)});
  }

  void write(const Op& op, size_t i) {
    Contents& contents = buffers_[op.buffer];
    for (const Op* reader : contents.readers) {
      if (!order_.is_before(*reader, i)) {
        add(FaultKind::kBufferRace, i, "may overwrite what is still read by", reader);
      }
    }
    if (contents.written_by != nullptr && !order_.is_before(*contents.written_by, i)) {
      add(FaultKind::kBufferRace, i, "may run together with", contents.written_by);
    }
    contents = {&op, {}};
  }

  void read(const Op& op, size_t i) {
    Contents& contents = buffers_[op.buffer];
    if (contents.written_by == nullptr) {
      add(FaultKind::kWrongContents, i, "reads a buffer that nothing was received into");
      return;
    }
    if (!order_.is_before(*contents.written_by, i)) {
      add(FaultKind::kBufferRace, i, "does not wait for", contents.written_by);
    }
    contents.readers.push_back(&op);
    const Op& held = *contents.written_by;
    if (op.kv_shard < 0 && held.kv_shard < 0) return;  // A program without keys.
    if (op.kv_shard != held.kv_shard || op.kv_begin < held.kv_begin || op.kv_end > held.kv_end ||
        op.kv_begin - held.kv_begin != op.buffer_begin - held.buffer_begin) {
      add(FaultKind::kWrongContents, i, "reads keys that the buffer does not hold; it holds",
          &held);
    }
  }

  void read_home(const Op& op, size_t i) {
    if (!program_.has_attention || op.kv_shard < 0) return;
    if (op.kv_shard != rank_ || op.buffer_begin != op.kv_begin ||
        op.kv_end > program_.partition.shard_tokens(rank_)) {
      add(FaultKind::kWrongContents, i, "reads keys that are not in the rank's own shard");
    }
  }

  const RingProgram& program_;
  const RankProgram& ops_;
  const int rank_;
  const Order order_;
  std::map<int32_t, Contents> buffers_;
  std::vector<Fault>& faults_;
};

}  // namespace

void check_buffers(const RingProgram& program, const Match& match, std::vector<Fault>& faults) {
  for (int rank = 0; rank < program.ranks(); ++rank) RankChecker(program, rank, faults).check();
  for (const auto& [send_id, receive_id] : match.receive_of) {
    const Op& send = program.op(send_id);
    const Op& receive = program.op(receive_id);
    if (send.kv_shard == receive.kv_shard && send.kv_begin == receive.kv_begin &&
        send.kv_end == receive.kv_end) {
      continue;
    }
    faults.push_back({FaultKind::kWrongContents,
                      fmt::format("{} brings other keys than {} expects",
                                  describe(program, send_id), describe(program, receive_id)),
                      {send_id, receive_id}});
  }
}

}  // namespace ring::check
