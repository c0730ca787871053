// Topology shapes: machines and networks known by name, with the capacities their makers state.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/topology.h"

namespace ring {

/// A topology, the nodes on which ranks are placed in ring order, and where its figures come from.
/// No link of a named shape is calibrated: only a calibration makes it so.
struct Shape {
  std::string name;
  Topology topology;
  std::vector<int> processors;
  std::map<std::string, std::string> provenance;  ///< Link class or parameter -> source.
};

struct ShapeInfo {
  std::string_view name;
  std::string_view summary;
  std::string_view options;  ///< "nodes=1 nics=8 ...", with the defaults.
};
std::span<const ShapeInfo> all_shapes();

/// "NAME" or "NAME:key=value,key=value", for example "dgx-a100:nodes=4" or
/// "ring:ranks=8,bandwidth=25GB/s,latency=5us". Every shape takes "order=0-4-1-5", the processors
/// in ring order (docs/topology.md lists shapes and keys). Throws Error(kUsage) for unknown names
/// and keys, with the nearest spelling, and for values out of range.
Shape make_shape(std::string_view text);

/// Whether the part before ':' is the name of a shape.
bool is_shape_name(std::string_view text);

}  // namespace ring
