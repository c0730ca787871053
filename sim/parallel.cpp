#include "sim/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace ring {

bool parallel_for(size_t count, int threads, const std::stop_token& stop,
                  const std::function<void(size_t)>& work) {
  std::atomic<size_t> next{0}, done{0};
  std::atomic<bool> has_failed{false};
  std::mutex mutex;
  std::exception_ptr failure;
  size_t failed_at = count;
  const auto run = [&] {
    while (!stop.stop_requested() && !has_failed) {
      const size_t i = next++;
      if (i >= count) return;
      try {
        work(i);
        ++done;
      } catch (...) {
        const std::lock_guard lock(mutex);
        has_failed = true;
        if (i < failed_at) {
          failed_at = i;
          failure = std::current_exception();
        }
      }
    }
  };
  const size_t wanted =
      threads > 0 ? static_cast<size_t>(threads) : std::thread::hardware_concurrency();
  const size_t helpers = std::min(std::max<size_t>(1, wanted), std::max<size_t>(1, count)) - 1;
  {
    std::vector<std::jthread> pool;
    for (size_t i = 0; i < helpers; ++i) pool.emplace_back(run);
    run();
  }
  if (failure) std::rethrow_exception(failure);
  return done == count;
}

}  // namespace ring
