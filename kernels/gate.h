// Gate: a number that only grows within a run, and that threads park at until it is large enough.
#pragma once

#include <atomic>
#include <cstdint>

namespace ring {

/// Waiting parks in the kernel and does not spin: lanes share cores, so a spinning waiter would
/// take time from the lane it waits for. No locks, no allocation.
class alignas(64) Gate {
 public:
  /// Value of a closed gate: every wait is over, and the waiter finds out why by itself.
  static constexpr uint32_t kClosed = UINT32_MAX;

  uint32_t value() const { return value_.load(std::memory_order_acquire); }

  /// Raises the value to `to` and wakes the waiters. A closed gate stays closed.
  void raise(uint32_t to);
  /// Adds one and returns the new value, which must be below kClosed; for gates that are never
  /// closed.
  uint32_t add_one();
  /// Returns true once the value is at least `level`, false when the gate was closed.
  bool wait(uint32_t level);
  /// As `wait`, but gives up after about `milliseconds` and returns whether the level was reached.
  bool wait_for(uint32_t level, int milliseconds);
  void close();
  /// Back to 0; only while nobody waits.
  void reset() { value_.store(0, std::memory_order_release); }

 private:
  void wake();

  std::atomic<uint32_t> value_{0};
  std::atomic<uint32_t> waiters_{0};
};

}  // namespace ring
