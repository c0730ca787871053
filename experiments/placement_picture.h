// A picture of a placement: processors on a circle in ring order, their hops with what they get.
#pragma once

#include <string>

#include "core/topology.h"
#include "sim/placement.h"

namespace ring {

/// SVG. Hops of the best ring are drawn by kind (colour and dash) and as wide as they are fast, the
/// worst of them in red; direct links that the ring leaves unused are thin. Up to 128 processors;
/// throws Error(kUsage) for more.
std::string placement_svg(const Topology& topology, const Placement& placement,
                          const std::string& title);

}  // namespace ring
