#include "sim/replicas.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <mutex>
#include <thread>

#include "core/error.h"

namespace ring {

namespace {

void require_sane(const ReplicaOptions& options) {
  if (options.draws < 1) {
    throw_usage(fmt::format("{} draws of noise: at least one is needed", options.draws));
  }
  if (!(options.coverage > 0 && options.coverage < 1)) {
    throw_usage(fmt::format("an interval cannot cover {} of the draws", options.coverage),
                "give a share between 0 and 1");
  }
}

}  // namespace

double quantile(const std::vector<double>& sorted, double q) {
  RING_ASSERT(!sorted.empty());
  const double place = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(place);
  if (below + 1 >= sorted.size()) return sorted.back();
  return std::lerp(sorted[below], sorted[below + 1], place - static_cast<double>(below));
}

std::vector<Picoseconds> replica_makespans_ps(const RingProgram& program, const Machine& machine,
                                              const ReplicaOptions& options) {
  require_sane(options);
  std::vector<Picoseconds> makespans_ps(static_cast<size_t>(options.draws));
  std::atomic<int> next{0};
  std::mutex mutex;
  std::exception_ptr failure;
  const auto work = [&] {
    SimulationOptions simulation = options.simulation;
    simulation.keep_timeline = false;
    for (int draw = next++; draw < options.draws; draw = next++) {
      try {
        simulation.noise_seed = options.seed + static_cast<uint64_t>(draw);
        makespans_ps[static_cast<size_t>(draw)] =
            simulate(program, machine, simulation).makespan_ps;
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!failure) failure = std::current_exception();
        next = options.draws;
      }
    }
  };
  {
    std::vector<std::jthread> helpers;
    for (int i = 1; i < std::min(options.threads, options.draws); ++i) helpers.emplace_back(work);
    work();
  }
  if (failure) std::rethrow_exception(failure);
  std::sort(makespans_ps.begin(), makespans_ps.end());
  return makespans_ps;
}

Spread simulate_spread(const RingProgram& program, const Machine& machine,
                       const ReplicaOptions& options) {
  require_sane(options);
  ReplicaOptions needed = options;
  if (machine.noise.per_op == 0 && machine.noise.per_run == 0) needed.draws = 1;
  const std::vector<Picoseconds> draws = replica_makespans_ps(program, machine, needed);
  const std::vector<double> sorted(draws.begin(), draws.end());
  const auto at = [&](double q) {
    return static_cast<Picoseconds>(std::llround(quantile(sorted, q)));
  };
  Spread spread;
  spread.median_ps = at(0.5);
  spread.low_ps = at((1 - options.coverage) / 2);
  spread.high_ps = at((1 + options.coverage) / 2);
  spread.p95_ps = at(0.95);
  spread.p99_ps = at(0.99);
  spread.draws = needed.draws;
  return spread;
}

}  // namespace ring
