// LaneQueue: the ops of one lane that are fetched and not yet done, with what they wait for.
#pragma once

#include <cstdint>
#include <vector>

#include "core/ring_program.h"

namespace ring {

/// What the simulator keeps of an op while it is pending.
struct PendingOp {
  double work = 0;  ///< Compute kinds: picoseconds alone. Sends: bytes. Noise included.
  int64_t message = -1;
  int64_t index = 0;  ///< Into the ops of the rank.
  Bytes bytes = 0;
  Flops flops = 0;
  int32_t peer = -1;
  int32_t step = 0;
  int32_t kv_shard = -1;
  uint32_t dep_count = 0;
  OpKind kind = OpKind::kCompute;
  Protocol protocol = Protocol::kRendezvous;
};

/// A lane point in one word: 16 bits of lane, 48 bits of position.
struct PackedPoint {
  uint64_t bits = 0;
  static PackedPoint of(const LanePoint& point) {
    return {(static_cast<uint64_t>(point.position) << 16) | static_cast<uint64_t>(point.lane)};
  }
  uint32_t lane() const { return static_cast<uint32_t>(bits & 0xffff); }
  int64_t position() const { return static_cast<int64_t>(bits >> 16); }
};

/// A queue in one vector: grows to the most that was pending at once, and is reused.
template <typename T>
class Fifo {
 public:
  bool empty() const { return head_ == items_.size(); }
  size_t size() const { return items_.size() - head_; }
  const T& front() const { return items_[head_]; }
  const T& operator[](size_t at) const { return items_[head_ + at]; }
  void push(const T& item) {
    if (head_ > 16 && head_ * 2 > items_.size()) pack();
    items_.push_back(item);
  }
  void pop(size_t count = 1) {
    head_ += count;
    if (head_ == items_.size()) {
      items_.clear();
      head_ = 0;
    }
  }

 private:
  void pack() {
    items_.erase(items_.begin(), items_.begin() + static_cast<std::ptrdiff_t>(head_));
    head_ = 0;
  }

  std::vector<T> items_;
  size_t head_ = 0;
};

struct LaneQueue {
  Fifo<PendingOp> ops;
  Fifo<PackedPoint> deps;  ///< Of the ops, one after the other.
};

}  // namespace ring
