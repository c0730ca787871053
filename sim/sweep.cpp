#include "sim/sweep.h"

#include <mutex>

#include "core/strategy.h"
#include "sim/analytic.h"
#include "sim/parallel.h"

namespace ring {
namespace {

constexpr size_t kMostPoints = 1'000'000;

/// Replaces every tuning by as many as there are values.
template <typename Value>
void vary(std::vector<Tuning>& tunings, const std::vector<Value>& values, Value Tuning::*field) {
  if (values.empty()) return;
  if (tunings.size() * values.size() > kMostPoints) {
    throw_usage("a sweep may have a million points at most", "try fewer values per choice");
  }
  std::vector<Tuning> varied;
  varied.reserve(tunings.size() * values.size());
  for (const Tuning& tuning : tunings) {
    for (const Value& value : values) {
      varied.push_back(tuning);
      varied.back().*field = value;
    }
  }
  tunings = std::move(varied);
}

SweepPoint simulate_point(const Problem& problem, const Tuning& tuning, const Machine& machine,
                          SimulationOptions options) {
  SweepPoint point;
  point.tuning = tuning;
  options.keep_timeline = false;
  try {
    const RingProgram program = plan(problem, tuning);
    SimulationResult result = simulate(program, machine, options);
    point.makespan_ps = result.makespan_ps;
    point.metrics = std::move(result.metrics);
    const LowerBounds bounds = lower_bounds(program, machine);
    point.rank_bytes = bounds.rank_bytes;
    point.fits = bounds.fits;
    point.is_done = true;
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kInterrupted) return point;
    point.error = error.what();
    point.hint = error.hint();
  }
  return point;
}

}  // namespace

std::vector<Tuning> expand(const TuningGrid& grid) {
  std::vector<Tuning> tunings{grid.base};
  vary(tunings, grid.strategies, &Tuning::strategy);
  vary(tunings, grid.partitions, &Tuning::partition);
  vary(tunings, grid.ranks, &Tuning::ranks);
  vary(tunings, grid.block_tokens, &Tuning::block_tokens);
  vary(tunings, grid.blocks_per_message, &Tuning::blocks_per_message);
  vary(tunings, grid.pipeline_depths, &Tuning::pipeline_depth);
  vary(tunings, grid.lanes, &Tuning::lanes);
  return tunings;
}

std::vector<SweepPoint> sweep(const Problem& problem, const std::vector<Tuning>& tunings,
                              const Machine& machine, const SweepOptions& options) {
  std::vector<SweepPoint> points(tunings.size());
  for (size_t i = 0; i < tunings.size(); ++i) points[i].tuning = tunings[i];
  SimulationOptions simulation = options.simulation;
  simulation.stop = options.stop;
  std::mutex mutex;
  parallel_for(tunings.size(), options.threads, options.stop, [&](size_t i) {
    points[i] = simulate_point(problem, tunings[i], machine, simulation);
    if (!options.on_point) return;
    const std::lock_guard lock(mutex);
    options.on_point(i, points[i]);
  });
  return points;
}

std::optional<size_t> best_of(const std::vector<SweepPoint>& points) {
  std::optional<size_t> best;
  for (size_t i = 0; i < points.size(); ++i) {
    if (!points[i].is_done || !points[i].fits) continue;
    if (!best || points[i].makespan_ps < points[*best].makespan_ps) best = i;
  }
  return best;
}

}  // namespace ring
