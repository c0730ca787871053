// TimeAxis: round tick marks of a time axis and the unit they are read in.
#pragma once

#include <string>
#include <vector>

#include "core/units.h"

namespace ring {

struct TimeTick {
  Picoseconds at_ps = 0;
  std::string label;  ///< Without the unit: "2.5".
};

struct TimeAxis {
  std::string unit;  ///< "s", "ms", "us", "ns" or "ps".
  std::vector<TimeTick> ticks;
};

/// About `wanted` ticks at steps of 1, 2 or 5 times a power of ten over [0, end].
TimeAxis time_axis(Picoseconds end_ps, int wanted);

}  // namespace ring
