// Tells whether a core is undisturbed.
#pragma once

#include <functional>
#include <vector>

namespace ring::bench {

// A neighbour on the other hardware thread of a core, perhaps in another virtual machine, takes
// half of the core's queues. Multiply-adds in registers hardly feel it, whatever keeps many steps
// in flight does, so their ratio shows it when no count of the system does: exp2 in the first
// cache against multiply-adds. The clock cancels.
class QuietProbe {
 public:
  // Runs its argument on the cores to watch.
  using OnCores = std::function<void(const std::function<void(int)>&)>;

  QuietProbe() : QuietProbe(1, [](const std::function<void(int)>& work) { work(0); }) {}
  QuietProbe(int cores, OnCores on_cores);

  // Some 0.3 ms of work; the ratio on the slowest core.
  double measure();

  // Whether `ratio` is that of a quiet core, where `best` is what one gives.
  static bool is_quiet(double ratio, double best) { return ratio <= 1.1 * best; }

 private:
  std::vector<double> ratios_;  // by core
  OnCores on_cores_;
};

}  // namespace ring::bench
