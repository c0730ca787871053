// Legality: what could be planned instead of a combination that cannot.
#pragma once

#include <optional>
#include <string>

#include "core/error.h"
#include "core/problem.h"
#include "core/tuning.h"

namespace ring {

/// The tuning that is nearest to `tuning` and can be planned for the problem: first the same
/// strategy on the same ranks with another parameter or partition, then on another number of
/// ranks, then another strategy. Nothing when none is found.
std::optional<Tuning> nearest_legal(const Problem& problem, const Tuning& tuning);

/// The options in which `to` differs, as the command line takes them: "--strategy double-ring:4".
std::string options_text(const Tuning& from, const Tuning& to);

/// The error again, its hint with the nearest legal options added.
Error refusal_of(const Problem& problem, const Tuning& tuning, const Error& error);

}  // namespace ring
