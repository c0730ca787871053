// Sweep: one problem simulated under many tunings, in parallel, cancellable.
#pragma once

#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/machine.h"
#include "core/metrics.h"
#include "core/problem.h"
#include "core/tuning.h"
#include "sim/simulator.h"

namespace ring {

/// Values to try of each choice; an empty list keeps that of the base.
struct TuningGrid {
  Tuning base;
  std::vector<std::string> strategies;
  std::vector<std::string> partitions;
  std::vector<int> ranks;
  std::vector<Tokens> block_tokens;
  std::vector<int64_t> blocks_per_message;
  std::vector<int> pipeline_depths;
  std::vector<int> lanes;
};
/// Every combination, the last list changing fastest. Throws Error(kUsage) for more than a million.
std::vector<Tuning> expand(const TuningGrid& grid);

/// A point that failed keeps its error; the others are not lost by it.
struct SweepPoint {
  Tuning tuning;
  bool is_done = false;  ///< False: not reached before the stop, or failed.
  std::string error;     ///< Why it failed; empty when it did not.
  std::string hint;
  Picoseconds makespan_ps = 0;
  Metrics metrics;
  Bytes rank_bytes = 0;  ///< Memory of the fullest rank.
  bool fits = true;
};

struct SweepOptions {
  int threads = 0;  ///< 0: as many as the machine runs at once.
  std::stop_token stop;
  SimulationOptions simulation;  ///< Its timeline is never kept.
  /// Called from worker threads, one call at a time, as points finish.
  std::function<void(size_t index, const SweepPoint&)> on_point;
};

/// One entry per tuning, in their order; the same whatever the number of threads.
std::vector<SweepPoint> sweep(const Problem& problem, const std::vector<Tuning>& tunings,
                              const Machine& machine, const SweepOptions& options = {});

/// The fastest point that fits, the first of equals; nothing when none does.
std::optional<size_t> best_of(const std::vector<SweepPoint>& points);

}  // namespace ring
