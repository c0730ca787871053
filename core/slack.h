// Slack: how much later each op of a run could have ended without the run taking longer.
#pragma once

#include <vector>

#include "core/run_graph.h"

namespace ring {

/// By how much each op could end later without the run taking longer, if everything kept its
/// duration and its launch gap; by node, -1 for ops that did not run. Both sides of a rendezvous
/// have the same slack. Ops of the critical path have none, unless slices overlap by jitter.
/// Throws Error(kUsage) when the program has a cycle.
std::vector<Picoseconds> slacks(const RunGraph& graph);

}  // namespace ring
