#include "sim/bench/measure.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>

namespace ring {

Measured measure_apart(const std::function<double()>& call) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) return {};
  const pid_t child = fork();
  if (child == 0) {
    Measured measured;
    try {
      const auto start = std::chrono::steady_clock::now();
      measured.result = call();
      const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
      measured.seconds = passed.count();
      rusage usage{};
      getrusage(RUSAGE_SELF, &usage);
      measured.mebibytes = static_cast<double>(usage.ru_maxrss) / 1024;
      measured.has_worked = true;
    } catch (...) {
      measured.has_worked = false;
    }
    const bool is_written = write(ends[1], &measured, sizeof measured) == sizeof measured;
    _exit(is_written ? 0 : 1);
  }
  close(ends[1]);
  Measured measured;
  if (child < 0 || read(ends[0], &measured, sizeof measured) != sizeof measured) measured = {};
  close(ends[0]);
  if (child > 0) waitpid(child, nullptr, 0);
  return measured;
}

}  // namespace ring
