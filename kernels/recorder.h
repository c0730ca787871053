// Recorder: when the ops of one lane were posted, started and done; written by that lane alone.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "core/units.h"

namespace ring {

/// Nanoseconds of the steady clock; the one clock of measured timelines.
inline int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

inline double seconds_since(int64_t start_ns) {
  return static_cast<double>(now_ns() - start_ns) * 1e-9;
}

struct OpTimes {
  int64_t posted_ns = 0;
  int64_t start_ns = 0;
  int64_t end_ns = 0;
};

/// Room for every op of the lane is made beforehand: recording neither locks nor allocates.
class LaneRecorder {
 public:
  explicit LaneRecorder(int64_t ops) : times_(static_cast<size_t>(ops)) {}

  void clear() { done_ = 0; }
  void record(const OpTimes& times) { times_[done_++] = times; }
  /// Ops recorded so far: all before this position of the lane.
  int64_t done() const { return static_cast<int64_t>(done_); }
  const OpTimes& at(int64_t position) const { return times_[static_cast<size_t>(position)]; }

 private:
  std::vector<OpTimes> times_;
  size_t done_ = 0;
};

}  // namespace ring
