// HopLabel: how two processors are joined, in the words of nvidia-smi, told from a route.
#pragma once

#include <string>

#include "core/topology.h"

namespace ring {

/// "NVLink" or "xGMI" when all of the way is that; else the worst thing on the way: "NET" (NICs or
/// network), "SYS" (between sockets), "NODE" (between host bridges of one NUMA node), "PHB" (a host
/// bridge), "PXB" (several PCIe switches), "PIX" (one). Else the class of the narrowest link; empty
/// for a route without links.
std::string hop_label(const Topology& topology, const Route& route);

/// The nodes passed between the ends: "pcie0, socket0, pcie2"; empty for a direct link.
std::string nodes_between(const Topology& topology, const Route& route);

}  // namespace ring
