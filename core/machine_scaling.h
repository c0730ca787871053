// Machines made faster or slower: link capacities and latencies times a factor.
#pragma once

#include <string>

#include "core/machine.h"
#include "core/scenario.h"

namespace ring {

/// Multiplies the capacity of all links of the class; an empty class means all links.
void scale_bandwidth(Machine& machine, const std::string& link_class, double factor);
void scale_latency(Machine& machine, double factor);

/// The machine that the scenario asks about. Where messages are copied, bandwidth is that of copies
/// and latency their start.
void apply(const ScenarioWhatIf& what_if, Machine& machine);

}  // namespace ring
