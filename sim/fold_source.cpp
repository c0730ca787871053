// The programs that are simulated instead of symmetric ones.
#include <algorithm>
#include <map>
#include <unordered_map>

#include "core/error.h"
#include "sim/folding.h"

namespace ring {

namespace {

/// Numbers the messages of one pair of ranks in the order of their sends.
class SendOrder {
 public:
  SendOrder(const ProgramSource& source, int from, int to)
      : stream_(source.stream(from)), to_(to) {}

  /// -1 when the message is never sent.
  int64_t number(int64_t message) {
    for (;;) {
      const auto found = ahead_.find(message);
      if (found != ahead_.end()) {
        const int64_t number = found->second;
        ahead_.erase(found);
        return number;
      }
      batch_.clear();
      if (!stream_->next(batch_)) return -1;
      for (const Op& op : batch_.ops) {
        if (op.kind == OpKind::kSend && op.peer == to_) ahead_.emplace(op.message, next_++);
      }
    }
  }

 private:
  std::unique_ptr<RankStream> stream_;
  int to_;
  int64_t next_ = 0;
  std::unordered_map<int64_t, int64_t> ahead_;  ///< Read, but not yet asked for.
  OpBatch batch_;
};

class FoldedStream : public RankStream {
 public:
  FoldedStream(const ProgramSource& source, int rank)
      : source_(source), rank_(rank), stream_(source.stream(rank)) {}

  bool next(OpBatch& batch) override {
    const size_t before = batch.ops.size();
    if (!stream_->next(batch)) return false;
    for (size_t i = before; i < batch.ops.size(); ++i) {
      Op& op = batch.ops[i];
      if (op.kind == OpKind::kSend) op.message = sent_[op.peer]++;
      if (op.kind == OpKind::kReceive) op.message = order_of(op.peer).number(op.message);
    }
    return true;
  }

 private:
  SendOrder& order_of(int peer) {
    return orders_.try_emplace(peer, source_, peer, rank_).first->second;
  }

  const ProgramSource& source_;
  const int rank_;
  std::unique_ptr<RankStream> stream_;
  std::map<int, int64_t> sent_;  ///< Messages to each peer.
  std::map<int, SendOrder> orders_;
};

class FoldedSource : public ProgramSource {
 public:
  FoldedSource(const ProgramSource& source, int period) : source_(source), period_(period) {}
  int ranks() const override { return period_; }
  int lanes() const override { return source_.lanes(); }
  RankStorage storage(int rank) const override { return source_.storage(rank); }
  std::unique_ptr<RankStream> stream(int rank) const override {
    return std::make_unique<FoldedStream>(source_, rank);
  }
  std::string name() const override { return source_.name(); }
  const Problem* problem() const override { return source_.problem(); }

 private:
  const ProgramSource& source_;
  const int period_;
};

/// The ops of a rank in a form that is equal for ranks that a rotation maps onto each other.
std::vector<Op> turned_back(const RingProgram& program, const ProgramSource& folded, int rank) {
  const int ranks = program.ranks();
  std::vector<Op> ops;
  OpBatch batch;
  const auto stream = folded.stream(rank);
  for (batch.clear(); stream->next(batch); batch.clear()) {
    ops.insert(ops.end(), batch.ops.begin(), batch.ops.end());
  }
  const auto turn = [&](int32_t& number) {
    if (number >= 0) number = (number - rank + ranks) % ranks;
  };
  const auto index = static_cast<size_t>(rank);
  for (size_t i = 0; i < ops.size(); ++i) {
    ops[i].dep_begin = program.rank_programs[index].ops[i].dep_begin;
    turn(ops[i].peer);
    turn(ops[i].kv_shard);
    turn(ops[i].q_shard);
  }
  return ops;
}

bool are_equal(const Op& a, const Op& b) {
  return a.kind == b.kind && a.protocol == b.protocol && a.payload == b.payload &&
         a.micro_step == b.micro_step && a.lane == b.lane && a.lane_position == b.lane_position &&
         a.peer == b.peer && a.message == b.message && a.bytes == b.bytes &&
         a.fixed_ps == b.fixed_ps && a.kv_shard == b.kv_shard && a.q_shard == b.q_shard &&
         a.kv_end - a.kv_begin == b.kv_end - b.kv_begin &&
         a.q_end - a.q_begin == b.q_end - b.q_begin &&
         a.head_end - a.head_begin == b.head_end - b.head_begin &&
         a.visible_pairs == b.visible_pairs && a.active_rows == b.active_rows &&
         a.edge_rows == b.edge_rows && a.flops == b.flops && a.dep_begin == b.dep_begin &&
         a.dep_count == b.dep_count;
}

}  // namespace

std::unique_ptr<ProgramSource> fold_source(const ProgramSource& source, int period) {
  return std::make_unique<FoldedSource>(source, period);
}

int find_rotation(const RingProgram& program) {
  const int ranks = program.ranks();
  if (ranks < 2) return 0;
  const auto source = stream_of(program);
  const FoldedSource all(*source, ranks);
  const auto deps_equal = [&](int a, int b) {
    return program.rank_programs[static_cast<size_t>(a)].deps ==
           program.rank_programs[static_cast<size_t>(b)].deps;
  };
  for (int period = 1; period < ranks; ++period) {
    if (ranks % period != 0) continue;
    bool is_rotation = true;
    for (int first = 0; first < period && is_rotation; ++first) {
      const std::vector<Op> ops = turned_back(program, all, first);
      for (int rank = first + period; rank < ranks && is_rotation; rank += period) {
        const std::vector<Op> other = turned_back(program, all, rank);
        is_rotation = deps_equal(first, rank) &&
                      std::equal(ops.begin(), ops.end(), other.begin(), other.end(), are_equal);
      }
    }
    if (is_rotation) return period;
  }
  return 0;
}

}  // namespace ring
