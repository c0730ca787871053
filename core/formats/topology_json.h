// The topology of a machine file: its nodes and directed links, as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "core/formats/json_object.h"
#include "core/topology.h"

namespace ring {

nlohmann::ordered_json topology_to_json(const Topology& topology);
/// Throws Error(kUsage) with the place; links must join nodes that exist.
Topology topology_from_json(const nlohmann::json& value, const JsonPlace& place);

}  // namespace ring
