// Measuring a simulation in a process of its own: time, and the memory it takes.
#pragma once

#include <functional>

namespace ring {

struct Measured {
  double seconds = 0;       ///< Wall time of the call.
  double mebibytes = 0;     ///< Most memory that the process held.
  double result = 0;        ///< What the call returned.
  bool has_worked = false;  ///< False when the process failed.
};

/// Forks, calls, and waits. The memory of one call does not show in that of the next.
Measured measure_apart(const std::function<double()>& call);

}  // namespace ring
