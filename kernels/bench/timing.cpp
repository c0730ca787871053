#include "kernels/bench/timing.h"

#include <benchmark/benchmark.h>

#include <algorithm>

#include "kernels/recorder.h"

namespace ring::bench {
namespace {

constexpr int kFewestQuiet = 7;
constexpr int kTries = 4;
constexpr double kSlotSeconds = 0.02;
constexpr double kPatienceSeconds = 30.0;

double seconds_of(const Contender& contender, int calls) {
  const int64_t start_ns = now_ns();
  for (int call = 0; call < calls; ++call) {
    contender.run();
    benchmark::ClobberMemory();
  }
  return seconds_since(start_ns) / calls;
}

}  // namespace

bool Timer::probe_is_quiet(QuietProbe& probe) {
  const double ratio = probe.measure();
  ratios_.insert(std::upper_bound(ratios_.begin(), ratios_.end(), ratio), ratio);
  // The least of all but one in fifty: a probe whose multiply-adds alone were disturbed is too low.
  return QuietProbe::is_quiet(ratio, ratios_[ratios_.size() / 50]);
}

Timer::Run Timer::run_quietly(const Contender& contender, int calls, QuietProbe& probe) {
  Run run;
  bool before = probe_is_quiet(probe);
  for (int i = 0; i < kTries && !run.quiet; ++i) {
    run.seconds = seconds_of(contender, calls);
    const bool after = probe_is_quiet(probe);
    run.quiet = before && after;
    before = after;
  }
  return run;
}

Timing Timer::time(const std::vector<Contender>& contenders, QuietProbe& probe) {
  std::vector<int> calls;
  for (const Contender& contender : contenders) {
    seconds_of(contender, 1);
    calls.push_back(std::max(1, static_cast<int>(kSlotSeconds / seconds_of(contender, 1))));
  }
  Timing all;
  Timing calm;
  all.seconds.resize(contenders.size());
  calm.seconds.resize(contenders.size());
  int found = 0;
  const int64_t start_ns = now_ns();
  const auto patient = [&] {
    return all.rounds < rounds_ || seconds_since(start_ns) < kPatienceSeconds;
  };
  while (found < rounds_ && patient()) {
    std::vector<Run> runs;
    for (size_t i = 0; i < contenders.size(); ++i) {
      runs.push_back(run_quietly(contenders[i], calls[i], probe));
    }
    const bool quiet = std::all_of(runs.begin(), runs.end(), [](const Run& r) { return r.quiet; });
    found += quiet ? 1 : 0;
    for (size_t i = 0; i < contenders.size(); ++i) {
      all.seconds[i].push_back(runs[i].seconds);
      if (quiet) calm.seconds[i].push_back(runs[i].seconds);
    }
    ++all.rounds;
  }
  calm.rounds = all.rounds;
  calm.quiet = true;
  return found >= std::min(rounds_, kFewestQuiet) ? calm : all;
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
