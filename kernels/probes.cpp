#include "kernels/probes.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "core/error.h"
#include "kernels/cores.h"
#include "kernels/data.h"
#include "kernels/executor.h"
#include "kernels/machine_fit.h"
#include "kernels/probe_collector.h"
#include "kernels/probe_programs.h"
#include "kernels/recorder.h"

namespace ring {
namespace {

/// Runs of a probe that are measured in a round.
constexpr int kRunsPerRound = 2;
constexpr uint64_t kDataSeed = 1;

/// A probe program with its executor, which lives as long as the calibration: runs after the first
/// find their memory touched and their threads started.
struct RunningProbe {
  explicit RunningProbe(ProbeProgram probe_in) : probe(std::move(probe_in)), collector(probe) {}

  /// False when the run was interrupted.
  bool run(const CalibrationOptions& options) {
    if (!executor) {
      const SeededData data(kDataSeed);
      executor = std::make_unique<CpuExecutor>(
          probe.program, data,
          ExecutorOptions{.cores = options.cores, .interrupt = options.interrupt});
    }
    // The first run finds the caches full of another probe's data, which no repeated step does.
    if (!executor->run().is_complete) return false;
    for (int i = 0; i < kRunsPerRound; ++i) {
      const Timeline& timeline = executor->run();
      if (!timeline.is_complete) return false;
      collector.add_run(timeline);
    }
    return true;
  }

  ProbeProgram probe;
  ProbeCollector collector;
  std::unique_ptr<CpuExecutor> executor;
};

double seconds_since(int64_t start_ns) { return static_cast<double>(now_ns() - start_ns) * 1e-9; }

}  // namespace

CalibrationResult calibrate(const CalibrationOptions& options) {
  const int64_t start_ns = now_ns();
  const Cores cores;
  const int used = options.cores > 0 ? std::min(options.cores, cores.count()) : cores.count();
  std::vector<std::unique_ptr<RunningProbe>> probes;
  for (ProbeProgram& probe : probe_programs(used))
    probes.push_back(std::make_unique<RunningProbe>(std::move(probe)));

  // Rounds over all probes rather than all repeats of one: a slow second then touches every probe a
  // little instead of one a lot.
  CalibrationResult result;
  double round_s = 0;
  for (int round = 0; result.is_complete; ++round) {
    const double elapsed_s = seconds_since(start_ns);
    if (round >= options.least_rounds && elapsed_s + round_s > options.budget_s) break;
    for (size_t i = 0; i < probes.size() && result.is_complete; ++i) {
      const double now_s = seconds_since(start_ns);
      const double by_count = static_cast<double>(i + 1) / static_cast<double>(probes.size());
      if (options.on_progress) {
        const double least = (round + by_count) / options.least_rounds;
        options.on_progress(
            {probes[i]->probe.label, std::min({now_s / options.budget_s, least, 1.0}), now_s});
      }
      result.is_complete = probes[i]->run(options);
    }
    round_s = seconds_since(start_ns) - elapsed_s;
  }
  std::vector<const ProbeCollector*> collectors;
  for (const auto& probe : probes) collectors.push_back(&probe->collector);
  fit_machine(collectors, used, result.machine, result.calibration);
  result.machine.is_calibrated = result.is_complete;
  result.elapsed_s = seconds_since(start_ns);
  return result;
}

}  // namespace ring
