// Reads a topology from a TOML file that people write.
#pragma once

#include <string>
#include <string_view>

#include "core/topology_shapes.h"

namespace ring {

/// Reads the text of a topology file (docs/topology.md describes it):
///   name = "two boards"
///   ring = ["a0", "a1", "b0"]            # optional; default: all GPUs and cores as they come
///   [[node]]
///   name = "a0"
///   kind = "gpu"                         # gpu core switch pcie-switch nic host
///   host = 0                             # optional
///   backplane = "600GB/s"                # optional
///   [[link]]
///   between = ["a0", "switch"]           # both directions; or from = "a0", to = "switch"
///   bandwidth = "300GB/s"
///   latency = "1us"
///   class = "nvlink"                     # optional, default "link"
///   half-duplex = true                   # optional, with `between` only
/// Throws Error(kUsage) with file:line for syntax, unknown or missing keys, wrong types, foreign
/// units, unknown nodes, and names given twice. `file` is only for messages.
Shape parse_topology(std::string_view text, std::string_view file);

/// A file that reads back to the same topology: nodes, links and ranks in their order. Throws
/// Error(kUsage) for what the format cannot say: two nodes of one name, links that are down.
std::string topology_toml(const Shape& shape);

/// Throws Error(kUsage) when the file cannot be read.
Shape read_topology_file(const std::string& path);

}  // namespace ring
