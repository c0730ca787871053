// Replicas: the same simulation under many draws of the machine's noise, and its quantiles.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/simulator.h"

namespace ring {

/// Quantiles of a sample; between neighbouring values linearly.
struct Spread {
  Picoseconds median_ps = 0;
  Picoseconds low_ps = 0, high_ps = 0;  ///< The interval that holds `coverage` of the draws.
  Picoseconds p95_ps = 0, p99_ps = 0;
  int draws = 0;
};

struct ReplicaOptions {
  int draws = 31;
  uint64_t seed = 1;             ///< Draw i uses noise seed `seed` + i.
  double coverage = 0.9;         ///< Of the interval, in (0, 1).
  int threads = 1;               ///< The result does not depend on it.
  SimulationOptions simulation;  ///< Its timeline and noise seed are not used.
};

/// The value below which the share `q` of the sorted, non-empty sample lies.
double quantile(const std::vector<double>& sorted, double q);

/// Makespans of all draws, sorted. Throws Error(kUsage) for no draws or a coverage outside (0, 1),
/// and as `simulate`.
std::vector<Picoseconds> replica_makespans_ps(const RingProgram& program, const Machine& machine,
                                              const ReplicaOptions& options = {});

/// Median and interval of the makespan. A machine without noise needs one draw only, and gets it.
Spread simulate_spread(const RingProgram& program, const Machine& machine,
                       const ReplicaOptions& options = {});

}  // namespace ring
