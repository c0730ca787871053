#include "kernels/bench/timing.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>

namespace ring::bench {

std::vector<std::vector<double>> time_rounds(const std::vector<Contender>& contenders, int rounds) {
  using Clock = std::chrono::steady_clock;
  std::vector<std::vector<double>> seconds(contenders.size());
  for (int round = -1; round < rounds; ++round) {
    for (size_t i = 0; i < contenders.size(); ++i) {
      const auto start = Clock::now();
      contenders[i].run();
      benchmark::ClobberMemory();
      const std::chrono::duration<double> taken = Clock::now() - start;
      if (round >= 0) seconds[i].push_back(taken.count());
    }
  }
  return seconds;
}

Summary summarise(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  Summary summary;
  summary.samples = static_cast<int>(n);
  if (n == 0) return summary;
  summary.median = 0.5 * (values[(n - 1) / 2] + values[n / 2]);
  summary.spread = 0.5 * (values[n - 1 - n / 4] - values[n / 4]) / summary.median;
  return summary;
}

Summary summarise_ratio(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> ratios;
  for (size_t i = 0; i < a.size(); ++i) ratios.push_back(a[i] / b[i]);
  return summarise(std::move(ratios));
}

}  // namespace ring::bench
