// The single checks of which program_check is made; each appends the faults it finds.
#pragma once

#include <algorithm>
#include <map>
#include <vector>

#include "core/program_check.h"

namespace ring::check {

/// Pairs every send with its receive.
struct Match {
  std::map<OpId, OpId> receive_of, send_of;
};

void check_ops(const RingProgram& program, std::vector<Fault>& faults);
Match check_messages(const RingProgram& program, std::vector<Fault>& faults);
void check_deadlock(const RingProgram& program, const Match& match, std::vector<Fault>& faults);

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

/// Whether a buffer that an op names for this payload is one of the shaped ones.
inline bool is_shaped_buffer(const RankStorage& storage, Payload payload, int32_t buffer) {
  if (is_gradient(payload) && storage.gradient_buffers > 0) return false;
  if (payload == Payload::kQuerySide && storage.query_buffers > 0) return false;
  return buffer >= storage.buffers;
}

void check_buffers(const RingProgram& program, const Match& match, std::vector<Fault>& faults);
/// Shaped buffers and states, row by row: nothing is overwritten while it may be read, and
/// everybody reads the tokens that he expects.
void check_shaped(const RingProgram& program, std::vector<Fault>& faults);
void check_pairs(const RingProgram& program, std::vector<Fault>& faults);
/// Expects a program without deadlock; finds nothing in one that has any.
void check_gradients(const RingProgram& program, const Match& match, std::vector<Fault>& faults);

}  // namespace ring::check
