// The reference rings as SimGrid programs, for comparing in one run.
#pragma once

#include "sim/reference_scenarios.h"

namespace ring {

/// Seconds of simulated time of the scenario on ring_of_gpus. To be called once per process, since
/// SimGrid has one engine. Model CM02, no cross-traffic.
double simgrid_ring_seconds(const RingScenario& scenario);

}  // namespace ring
