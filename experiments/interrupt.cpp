#include "experiments/interrupt.h"

#include <csignal>

namespace ring {

namespace {

// A signal handler can reach nothing but a static; this is the only one.
std::atomic<bool> is_interrupted{false};  // NOLINT
static_assert(std::atomic<bool>::is_always_lock_free);

void on_signal(int) { is_interrupted.store(true, std::memory_order_relaxed); }

}  // namespace

const std::atomic<bool>& catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  return is_interrupted;
}

}  // namespace ring
