// AloneTimes: how long each op of a run would have taken with its resources to itself.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/machine.h"
#include "core/run_graph.h"

namespace ring {

/// On the wire: the slice of the send of an eager transfer, else that of the node itself.
Picoseconds wire_time_ps(const RunGraph& graph, int64_t node);

/// By node of a RunGraph; both empty when no machine is known.
struct AloneTimes {
  /// -1: nothing to share, or not known.
  std::vector<Picoseconds> alone_ps;
  /// Of a transfer: the link of its route that others left least of, or -1.
  std::vector<int32_t> tightest_link;

  /// min(duration, time alone), or the duration where nothing is known.
  Picoseconds alone_within(int64_t node, Picoseconds duration_ps) const;
  int32_t link_of(int64_t node) const;
};

/// Transfers: latency of the route plus bytes over its narrowest link, or the cost of a copy where
/// the receiver copies; not known where nobody else used the tightest link. Attention: its cost
/// alone, but only where something can disturb it: several ranks on one processor, or a machine on
/// which attention slows beside other work. Flows on a link are counted from the timeline itself,
/// so that a measured run is explained by what it did.
AloneTimes alone_times(const RunGraph& graph, const Machine& machine);

/// "NIC n0.nic (n0.switch -> n0.nic, 25.0 GB/s)" or "nvlink g0 -> g1 (300 GB/s)".
std::string describe_link(const Topology& topology, int link);

}  // namespace ring
