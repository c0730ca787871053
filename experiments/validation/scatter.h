// Scatter plot of predicted against published values, as SVG.
#pragma once

#include <string>
#include <vector>

#include "experiments/validation/scores.h"

namespace ring {

/// Times in seconds on two logarithmic axes, one colour and mark a file, with the lines of equal
/// values and of 20 % off. Rows without a time (tokens) are left out.
std::string scatter_svg(const std::vector<ScoredRow>& rows);

}  // namespace ring
