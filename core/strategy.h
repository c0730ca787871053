// Strategy: a named way of cutting attention among ranks, and the list of all of them.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "core/ring_program.h"

namespace ring {

/// What people weigh strategies by, in words. S tokens, P ranks, Hq and Hkv heads, b bytes per
/// value.
struct StrategyFacts {
  std::string_view bytes;   ///< What a rank sends, per step.
  std::string_view memory;  ///< What a rank holds.
  std::string_view wins;    ///< Where it is the right choice.
};

/// One generator: turns a problem and a tuning into a program source.
struct Strategy {
  std::string_view name;
  std::string_view summary;    ///< What moves, in one sentence.
  std::string_view parameter;  ///< What stands behind a colon of the name; empty: nothing may.
  /// Throws Error(kUsage) for tunings that this strategy cannot run, saying which can.
  std::unique_ptr<ProgramSource> (*make)(const Problem&, const Tuning&, const Partition&);
  StrategyFacts facts = {};
  /// The strategy with a parameter that is worth listing beside its plain name; empty: none is.
  std::string (*variant)(const Problem&) = nullptr;
};

std::span<const Strategy> all_strategies();
/// `text` is a name, with a parameter behind a colon where the strategy takes one
/// ("double-ring:4"). Throws Error(kUsage) with the known names and the nearest spelling.
const Strategy& find_strategy(std::string_view text);

/// Validates problem and tuning, makes the partition, generates and materializes the program. What
/// cannot be combined is refused with the reason and the nearest that can (legality.h).
RingProgram plan(const Problem& problem, const Tuning& tuning);
/// The same without materializing, for very large programs.
std::unique_ptr<ProgramSource> plan_source(const Problem& problem, const Tuning& tuning);
/// The program that `plan` makes, without its ops: problem, tuning and partition, which
/// plan_source() has found valid.
RingProgram outline_of(const Problem& problem, const Tuning& tuning);
/// The same for problem and tuning that are valid by themselves, without looking for what would be
/// legal instead.
std::unique_ptr<ProgramSource> plan_exactly(const Problem& problem, const Tuning& tuning);

}  // namespace ring
