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

Summary summarise(std::vector<double> speeds) {
  std::sort(speeds.begin(), speeds.end());
  const size_t n = speeds.size();
  Summary summary;
  summary.samples = static_cast<int>(n);
  if (n == 0) return summary;
  summary.median = 0.5 * (speeds[(n - 1) / 2] + speeds[n / 2]);
  summary.spread = 0.5 * (speeds[n - 1 - n / 4] - speeds[n / 4]) / summary.median;
  summary.fastest = speeds.back();
  return summary;
}

Summary summarise_ratio(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> ratios;
  for (size_t i = 0; i < a.size(); ++i) ratios.push_back(a[i] / b[i]);
  Summary summary = summarise(std::move(ratios));
  if (summary.samples > 0) {
    summary.fastest = *std::min_element(a.begin(), a.end()) / *std::min_element(b.begin(), b.end());
  }
  return summary;
}

}  // namespace ring::bench
