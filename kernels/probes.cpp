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
#include "kernels/speed_check.h"

namespace ring {
namespace {

/// Runs of a probe that are measured in a round.
constexpr int kRunsPerRound = 2;
constexpr size_t kProbesPerSpeedCheck = 8;
/// Rounds beyond the first are left out when they would end later than this.
constexpr double kLongest_s = 58;
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

/// Rounds over all probes rather than all repeats of one: a slow second then touches every probe a
/// little instead of one a lot.
class Rounds {
 public:
  Rounds(const CalibrationOptions& options, int cores)
      : options_(options), start_ns_(now_ns()), speed_check_(cores) {
    for (ProbeProgram& probe : probe_programs(cores))
      probes_.push_back(std::make_unique<RunningProbe>(std::move(probe)));
    speed_.probe = kSpeedProbe;
  }

  /// False when interrupted.
  bool run() {
    double round_s = 0;
    for (round_ = 0;; ++round_) {
      const double before_s = elapsed_s();
      const double limit_s = round_ < options_.least_rounds ? kLongest_s : options_.budget_s;
      if (round_ > 0 && before_s + round_s > limit_s) return true;
      for (size_t i = 0; i < probes_.size(); ++i) {
        report(i);
        if (!probes_[i]->run(options_)) return false;
        if (i % kProbesPerSpeedCheck == 0) speed_.seconds.push_back(speed_check_.measure());
      }
      round_s = elapsed_s() - before_s;
    }
  }

  std::vector<const ProbeCollector*> collectors() const {
    std::vector<const ProbeCollector*> collectors;
    for (const auto& probe : probes_) collectors.push_back(&probe->collector);
    return collectors;
  }
  const CalibrationSample& speed() const { return speed_; }
  double elapsed_s() const { return seconds_since(start_ns_); }

 private:
  void report(size_t probe) const {
    if (!options_.on_progress) return;
    const double of_round = static_cast<double>(probe) / static_cast<double>(probes_.size());
    const double by_rounds = (round_ + of_round) / options_.least_rounds;
    const double by_time = options_.budget_s > 0 ? elapsed_s() / options_.budget_s : 1;
    options_.on_progress(
        {probes_[probe]->probe.label, std::min({by_rounds, by_time, 1.0}), elapsed_s()});
  }

  const CalibrationOptions& options_;
  int64_t start_ns_;
  std::vector<std::unique_ptr<RunningProbe>> probes_;
  SpeedCheck speed_check_;
  CalibrationSample speed_;
  int round_ = 0;
};

}  // namespace

CalibrationResult calibrate(const CalibrationOptions& options) {
  const Cores cores;
  const int used = options.cores > 0 ? std::min(options.cores, cores.count()) : cores.count();
  Rounds rounds(options, used);
  CalibrationResult result;
  result.is_complete = rounds.run();
  fit_machine(rounds.collectors(), used, result.machine, result.calibration);
  result.calibration.samples.push_back(rounds.speed());
  result.machine.is_calibrated = result.is_complete;
  result.elapsed_s = rounds.elapsed_s();
  return result;
}

}  // namespace ring
