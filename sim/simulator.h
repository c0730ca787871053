// Simulator: predicts when every op of a ring program is done on a machine.
#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "core/machine.h"
#include "core/metrics.h"
#include "core/ring_program.h"
#include "core/timeline.h"

namespace ring {

/// All computation of the rank takes `factor` times as long.
struct SlowRank {
  int rank = 0;
  double factor = 1;
};
/// All links from node `from` to node `to` have their capacity divided by `factor`.
struct SlowLink {
  int from = 0, to = 0;
  double factor = 1;
};
/// All links from node `from` to node `to` are down; transfers take another way, and a note of the
/// result says so, or the simulation fails if there is none.
struct BrokenLink {
  int from = 0, to = 0;
};
struct LateStart {
  int rank = 0;
  Picoseconds delay_ps = 0;
};

/// What goes wrong in a simulated run.
struct Disturbances {
  std::vector<SlowRank> slow_ranks = {};
  std::vector<SlowLink> slow_links = {};
  std::vector<BrokenLink> broken_links = {};
  std::vector<LateStart> late_starts = {};
};

struct SimulationOptions {
  bool keep_timeline = true;  ///< False for programs too large for one: metrics only.
  /// Simulate one period of a program that repeats itself rank by rank, where that is exact (see
  /// sim/folding.h). Never done when a timeline is kept or noise is on.
  bool allow_folding = true;
  std::optional<uint64_t> noise_seed;  ///< Noise of the machine is on when set.
  Disturbances disturbances;
  std::stop_token stop;  ///< Ends the simulation with Error(kInterrupted).
};

/// What a link carried.
struct LinkUse {
  int link = 0;  ///< Number in the topology.
  Bytes bytes = 0;
  double busy_share = 0;  ///< Bytes over what it could have carried during the run.
};

struct SimulationResult {
  Timeline timeline;  ///< Without slices when it was not kept.
  Metrics metrics;
  Picoseconds makespan_ps = 0;
  int64_t ops = 0;
  int64_t messages = 0;
  int64_t events = 0;
  int64_t solved_groups = 0;   ///< Flow groups whose rate was worked out; see sim/fluid.h.
  int simulated_ranks = 0;     ///< Fewer than the program has when it was folded.
  std::vector<LinkUse> links;  ///< Links that carried something, by number.
  std::vector<std::string> notes;
};

/// Simulates the program on the machine, rank r on processor r modulo their number. The same input
/// gives the same result to the last bit. `docs/model.md` states the model.
///
/// Throws Error(kUsage) for a machine that lacks a cost or a path the program needs, and
/// Error(kRunFailed) when the program cannot finish, naming what every waiting rank waits for.
SimulationResult simulate(const RingProgram& program, const Machine& machine,
                          const SimulationOptions& options = {});
/// The same for a program that is generated while it is simulated. With `keep_timeline` it is
/// materialized first.
SimulationResult simulate(const ProgramSource& source, const Machine& machine,
                          const SimulationOptions& options = {});

}  // namespace ring
