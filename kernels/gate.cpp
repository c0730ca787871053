#include "kernels/gate.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <climits>

namespace ring {
namespace {

static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t));

void futex_wait(std::atomic<uint32_t>& word, uint32_t seen, const timespec* timeout) {
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, seen, timeout, nullptr, 0);
}

}  // namespace

// The order "store value, then read waiters" here and "count as waiter, then read value" in wait
// must not be mixed up by the processor, hence sequentially consistent.
void Gate::wake() {
  if (waiters_.load(std::memory_order_seq_cst) > 0)
    syscall(SYS_futex, &value_, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

void Gate::raise(uint32_t to) {
  if (value_.exchange(to, std::memory_order_seq_cst) == kClosed)
    value_.store(kClosed, std::memory_order_seq_cst);
  wake();
}

uint32_t Gate::add_one() {
  const uint32_t now = value_.fetch_add(1, std::memory_order_seq_cst) + 1;
  wake();
  return now;
}

void Gate::close() {
  value_.store(kClosed, std::memory_order_seq_cst);
  wake();
}

bool Gate::wait(uint32_t level) {
  uint32_t seen = value_.load(std::memory_order_acquire);
  if (seen < level) {
    waiters_.fetch_add(1, std::memory_order_seq_cst);
    while ((seen = value_.load(std::memory_order_seq_cst)) < level)
      futex_wait(value_, seen, nullptr);
    waiters_.fetch_sub(1, std::memory_order_relaxed);
  }
  return seen != kClosed;
}

bool Gate::wait_for(uint32_t level, int milliseconds) {
  uint32_t seen = value_.load(std::memory_order_acquire);
  if (seen < level) {
    waiters_.fetch_add(1, std::memory_order_seq_cst);
    const timespec timeout{milliseconds / 1000, (milliseconds % 1000) * 1'000'000L};
    seen = value_.load(std::memory_order_seq_cst);
    if (seen < level) futex_wait(value_, seen, &timeout);
    seen = value_.load(std::memory_order_acquire);
    waiters_.fetch_sub(1, std::memory_order_relaxed);
  }
  return seen >= level;
}

}  // namespace ring
