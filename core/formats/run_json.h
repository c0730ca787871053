// Run files: what was run or simulated, when every op was done, and how well it was foretold.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/counters.h"
#include "core/metrics.h"
#include "core/op_names.h"
#include "core/problem.h"
#include "core/timeline.h"
#include "core/tuning.h"

namespace ring {

/// The time within which a step is expected to end.
struct PredictedInterval {
  Picoseconds low_ps = 0, high_ps = 0;
  double coverage = 0;           ///< Share of runs that should fall inside, a fraction.
  bool is_extrapolated = false;  ///< Something lay outside the range the machine is trusted in.
};

/// Problem and tuning of a program that a strategy made.
struct ProgramIdentity {
  Problem problem;
  Tuning tuning;
};

struct RunFile {
  std::string name;
  std::optional<ProgramIdentity> identity;
  std::string program_text;  ///< Text form of a program written by hand, which has no identity.
  std::string machine;       ///< Name of the machine profile.
  uint64_t seed = 0;
  std::map<std::string, std::string> context;  ///< Version, date, host, notes.

  OpNames op_names;  ///< Of an imported run: what its kernels are called. Else empty.

  std::optional<Timeline> measured, predicted;
  std::optional<Metrics> measured_metrics, predicted_metrics;
  std::vector<Picoseconds> measured_steps_ps;  ///< Times of all measured steps, in their order.
  /// Times of two ranks in `measured` may be so far off from each other; 0 where one clock took
  /// all.
  Picoseconds measured_clock_uncertainty_ps = 0;
  std::vector<Counter> measured_counters;  ///< Beside `measured`; often none.
  std::optional<PredictedInterval> predicted_interval;

  /// False when a timeline in it is only a part of a run.
  bool is_complete() const;
};

inline constexpr std::string_view kRunSchema = "ringscope-run";
inline constexpr int kRunSchemaVersion = 1;

/// Reads back to an equal file; the same file gives the same bytes (docs/formats.md).
std::string run_json(const RunFile& run);

/// `name` is the file's name in messages. Throws Error(kUsage) with file and JSON pointer (or line
/// and column) for anything unknown, missing, of a wrong type, out of range or contradictory.
RunFile parse_run(std::string_view text, const std::string& name);

RunFile read_run(const std::string& path);
void write_run(const std::string& path, const RunFile& run);

}  // namespace ring
