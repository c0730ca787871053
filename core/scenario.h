// Scenario: everything that one prediction or run is made of, as a person writes it down.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/problem.h"
#include "core/tuning.h"
#include "core/units.h"

namespace ring {

/// What goes wrong in a predicted run, by ranks and by nodes of the machine.
struct ScenarioSlowRank {
  int rank = 0;
  double factor = 1;  ///< All its computation takes this many times as long.
};
struct ScenarioSlowLink {
  int from = 0, to = 0;
  double factor = 1;  ///< The capacity is divided by this.
};
struct ScenarioBrokenLink {
  int from = 0, to = 0;
};
struct ScenarioLateStart {
  int rank = 0;
  Picoseconds delay_ps = 0;
};

/// The machine as it could be instead: what a user asks "what if" about.
struct ScenarioWhatIf {
  double bandwidth =
      1;               ///< All link capacities times this; the copy rate where messages are copied.
  double latency = 1;  ///< All link latencies times this; the start of a copy likewise.
  std::optional<double> jitter;  ///< Noise::per_op instead of the machine's own.
  bool operator==(const ScenarioWhatIf&) const = default;
};

struct Scenario {
  std::string name;
  Problem problem;
  Tuning tuning;
  std::string machine;  ///< Machine file or name of a profile; empty: the one of this machine.
  std::string model;    ///< What the heads were taken from, for people to read; may be empty.

  ScenarioWhatIf what_if;
  std::optional<int64_t> noise_seed;  ///< Not negative; noise is on when set.
  std::vector<ScenarioSlowRank> slow_ranks;
  std::vector<ScenarioSlowLink> slow_links;
  std::vector<ScenarioBrokenLink> broken_links;
  std::vector<ScenarioLateStart> late_starts;
};

}  // namespace ring
