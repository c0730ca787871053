// Counters: what was sampled beside a measured timeline: clocks, power, memory of its devices.
#pragma once

#include <string>
#include <vector>

#include "core/units.h"

namespace ring {

struct CounterPoint {
  Picoseconds time_ps = 0;  ///< On the clock of the timeline; may lie before and after its slices.
  double value = 0;
};

/// One quantity of one device, from one point to the next as it was at the first of them.
struct Counter {
  std::string name;  ///< "SM clock"
  std::string unit;  ///< "MHz"
  int device = 0;
  std::vector<CounterPoint> points;  ///< By time.
};

}  // namespace ring
