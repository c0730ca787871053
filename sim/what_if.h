// WhatIf: what changes of machine and tuning would buy, and what would make communication vanish.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/bubbles.h"
#include "core/machine.h"
#include "core/ring_program.h"
#include "sim/simulator.h"

namespace ring {

/// One change and its effect.
struct Effect {
  std::string parameter;   ///< "nic bandwidth", "latency", "compute speed", "block size", "depth".
  std::string change;      ///< "+10 %", "-10 %", "1024 -> 2048".
  bool can_finish = true;  ///< False for a depth at which the program deadlocks; `why_not` says so.
  std::string why_not;
  Picoseconds makespan_ps = 0;
  double relative = 0;  ///< makespan / baseline - 1.
};

/// Communication that was not hidden, by the class of the narrowest link on the way.
struct Remedy {
  std::string link_class;      ///< "nic", "nvlink", "copy" (in-process transport).
  Picoseconds exposed_ps = 0;  ///< Sum over ranks, contention included.
  double bytes_per_s = 0;      ///< Capacity now, of the narrowest link of the class.
  /// Capacity at which at most a thousandth of the rank time is exposed; nothing when even
  /// kMostSpeedup times as much is not enough (latency, or no computation to hide behind).
  std::optional<double> vanishes_at_bytes_per_s;
};
inline constexpr double kMostSpeedup = 1024;

struct BlockRemedy {
  Tokens block_tokens = 0;   ///< Now.
  double exposed_share = 0;  ///< Of the rank time, now.
  /// The nearest block size, by factors of two, at which at most one per cent is exposed.
  std::optional<Tokens> vanishes_at_tokens;
  Tokens best_tokens = 0;    ///< The fastest of those tried.
  double best_relative = 0;  ///< Its makespan over that of now, minus 1.
};

struct WhatIf {
  Picoseconds baseline_ps = 0;
  std::vector<Effect> effects;       ///< The greatest gain first.
  std::vector<Remedy> remedies;      ///< The longest exposed first; none where nothing is exposed.
  std::optional<BlockRemedy> block;  ///< Of programs made by a strategy, where something is.
};

struct WhatIfOptions {
  SimulationOptions simulation;  ///< Disturbances and stop; noise is left out.
  int threads = 0;
  /// Programs with more ops get effects only: each remedy takes a dozen simulations.
  int64_t most_ops_for_remedies = 500'000;
};

/// Simulates the program again and again, each time with one thing changed. Throws as `simulate`.
WhatIf what_if(const RingProgram& program, const Machine& machine,
               const WhatIfOptions& options = {});

/// What limits the hop of one rank to another when nothing else moves.
struct NarrowestLink {
  std::string link_class;  ///< As Remedy::link_class.
  double bytes_per_s = 0;
};
/// Nothing for ranks on one processor or without a route.
std::optional<NarrowestLink> narrowest_link(const Machine& machine, int from, int to);

/// Exposed time of all ranks by hop class, from a simulated timeline.
std::vector<Remedy> exposed_by_class(const RunAccount& account, const RingProgram& program,
                                     const Machine& machine);

}  // namespace ring
