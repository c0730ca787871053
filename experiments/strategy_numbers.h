// StrategyNumbers: what a strategy moves and holds for a given problem, counted from its program.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/strategy.h"

namespace ring {

struct StrategyNumbers {
  Bytes sent_bytes = 0;           ///< By the rank that sends most.
  Bytes sent_per_step_bytes = 0;  ///< By the rank and in the step in which most is sent.
  int steps = 0;                  ///< Steps in which anything is sent.
  Bytes memory_bytes = 0;         ///< Of the rank that holds most.
};
StrategyNumbers count_numbers(const RingProgram& program);

/// A strategy as it would be used for a problem: with the tuning that was asked for, or the nearest
/// legal one, and why.
struct StrategyChoice {
  const Strategy* strategy = nullptr;
  Tuning tuning;
  std::string refusal;  ///< Why the tuning that was asked for is not legal; empty: it is.
  bool is_legal = false;
  bool is_variant = false;  ///< Strategy::variant of the one before it.
};

/// One choice per strategy, in the order of all_strategies(), each with its variant behind it.
std::vector<StrategyChoice> choose_strategies(const Problem& problem, const Tuning& tuning);

}  // namespace ring
