// TimeTicks: round tick marks for any part of a run, however small, with labels that stay short.
#pragma once

#include <string>
#include <vector>

#include "core/formats/time_axis.h"
#include "core/units.h"

namespace ring {

struct TimeTicks {
  std::string unit;             ///< Of the labels: "s", "ms", "us", "ns" or "ps".
  Picoseconds step_ps = 1;      ///< Between ticks; 1, 2 or 5 times a power of ten.
  Picoseconds base_ps = 0;      ///< Labels count from here: 0, or a time shortly before the part.
  std::vector<TimeTick> ticks;  ///< Within [from, to], in order.
};

/// About `wanted` ticks over [from_ps, to_ps]. Labels that would need more than four decimals count
/// from `base_ps` instead of from 0.
TimeTicks time_ticks(Picoseconds from_ps, Picoseconds to_ps, int wanted);

/// The time in the unit that fits, with just the decimals that tell times `resolution_ps` apart:
/// "3.3125 ms".
std::string time_label(Picoseconds at_ps, double resolution_ps);

}  // namespace ring
