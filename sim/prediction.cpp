#include "sim/prediction.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/fit.h"
#include "core/strategy.h"
#include "sim/folding.h"
#include "sim/study.h"

namespace ring {

namespace {

constexpr int64_t kReplicaOps = 400'000;
constexpr int64_t kMostStreamedOps = 1'000'000'000;  ///< Minutes.

int replicas_for(int64_t ops) {
  return static_cast<int>(std::clamp<int64_t>(kReplicaOps / std::max<int64_t>(1, ops), 8, 64));
}

PredictedInterval interval_of(const RingProgram& program, const Machine& machine,
                              SimulationOptions options) {
  std::vector<double> seconds;
  options.keep_timeline = false;
  const auto replicas = static_cast<uint64_t>(replicas_for(program.op_count()));
  for (uint64_t i = 0; i < replicas; ++i) {
    options.noise_seed = i + 1;
    seconds.push_back(seconds_from_picoseconds(simulate(program, machine, options).makespan_ps));
  }
  PredictedInterval interval;
  interval.coverage = kPredictedCoverage;
  interval.low_ps = picoseconds_from_seconds(quantile(seconds, (1 - kPredictedCoverage) / 2));
  interval.high_ps = picoseconds_from_seconds(quantile(seconds, (1 + kPredictedCoverage) / 2));
  return interval;
}

}  // namespace

Prediction predict(const RingProgram& program, const Machine& machine,
                   const SimulationOptions& options) {
  Prediction prediction;
  prediction.result = simulate(program, machine, options);
  prediction.extrapolated = extrapolated_quantities(program, machine);
  prediction.interval =
      predicted_interval(program, machine, prediction.result.makespan_ps, options);
  return prediction;
}

PredictedInterval predicted_interval(const RingProgram& program, const Machine& machine,
                                     Picoseconds makespan_ps, const SimulationOptions& options) {
  PredictedInterval interval;
  if (machine.noise.per_op > 0 || machine.noise.per_run > 0) {
    interval = interval_of(program, machine, options);
    interval.low_ps = std::min(interval.low_ps, makespan_ps);
    interval.high_ps = std::max(interval.high_ps, makespan_ps);
  }
  interval.is_extrapolated = !extrapolated_quantities(program, machine).empty();
  return interval;
}

Prediction predict_streamed(const RingProgram& outline, const Machine& machine,
                            SimulationOptions options) {
  options.keep_timeline = false;
  options.allow_folding = true;
  Prediction prediction;
  const auto source = plan_source(outline.problem, outline.tuning);
  if (estimated_ops(*source, kMostStreamedOps) > kMostStreamedOps &&
      !find_fold(*source, machine, options)) {
    throw_usage(
        fmt::format("the program has more than {} ops, and its ranks do not all do the same",
                    format_count(kMostStreamedOps)),
        "choose larger blocks or fewer ranks");
  }
  prediction.result = simulate(*source, machine, options);
  prediction.extrapolated = extrapolated_quantities(outline, machine);
  prediction.interval.is_extrapolated = !prediction.extrapolated.empty();
  const SimulationResult& result = prediction.result;
  std::string note =
      fmt::format("{} ops are too many to keep, so there is no timeline", format_count(result.ops));
  if (machine.noise.per_op > 0 || machine.noise.per_run > 0) note += " and no interval";
  const auto ranks = static_cast<int>(result.metrics.ranks.size());
  if (result.simulated_ranks < ranks) {
    note += fmt::format("; {} ranks stand for all {}, which do the same", result.simulated_ranks,
                        ranks);
  }
  prediction.result.notes.push_back(note);
  return prediction;
}

SimulationOptions simulation_options(const Scenario& scenario) {
  SimulationOptions options;
  options.noise_seed = scenario.noise_seed;
  Disturbances& disturbances = options.disturbances;
  for (const auto& slow : scenario.slow_ranks) {
    disturbances.slow_ranks.push_back({slow.rank, slow.factor});
  }
  for (const auto& slow : scenario.slow_links) {
    disturbances.slow_links.push_back({slow.from, slow.to, slow.factor});
  }
  for (const auto& broken : scenario.broken_links) {
    disturbances.broken_links.push_back({broken.from, broken.to});
  }
  for (const auto& late : scenario.late_starts) {
    disturbances.late_starts.push_back({late.rank, late.delay_ps});
  }
  return options;
}

Blame blame_of(const RingProgram& program, const Timeline& timeline, const Machine& machine) {
  const RunGraph graph(program, timeline);
  return blame_path(graph, critical_path(graph), alone_times(graph, machine));
}

void add_prediction(RunFile& run, const Prediction& prediction) {
  run.predicted = prediction.result.timeline;
  run.predicted_metrics = prediction.result.metrics;
  if (prediction.interval.coverage > 0) run.predicted_interval = prediction.interval;
}

std::vector<std::string> extrapolated_quantities(const RingProgram& program,
                                                 const Machine& machine) {
  struct Quantity {
    const char* key;
    const char* words;
    double value;
  };
  const auto count = [](int64_t value) { return static_cast<double>(value); };
  const std::vector<Quantity> quantities = {
      {"block_tokens", "block size", count(program.tuning.block_tokens)},
      {"head_dim", "head dim", count(program.problem.head_dim)},
      {"head_dim_v", "head dim of V", count(program.problem.head_dim_v)},
  };
  std::vector<std::string> found;
  if (!program.has_attention) return found;
  for (const Quantity& quantity : quantities) {
    const auto trusted = machine.trusted.find(quantity.key);
    if (trusted == machine.trusted.end()) continue;
    const TrustedRange& range = trusted->second;
    if (quantity.value >= range.low && quantity.value <= range.high) continue;
    found.push_back(fmt::format("{} {} (calibrated {} to {})", quantity.words, quantity.value,
                                range.low, range.high));
  }
  return found;
}

}  // namespace ring
