// RingClosure: whether a ring of ranks closes over a topology, over what, and which hop is worst.
#pragma once

#include <string>
#include <vector>

#include "core/topology.h"

namespace ring {

struct RingHop {
  int from_rank = 0, to_rank = 0;
  bool is_connected = false;
  Route route;
  int narrowest_link = -1;  ///< Link with the least share; -1 on one processor.
  int flows = 1;            ///< Hops of the ring that use that link.
  /// What the hop gets while all hops of the ring are under way: the least capacity / flows of its
  /// links; 0 (no limit) on one processor.
  double share_bytes_per_s = 0;
  std::string link_class;  ///< Of the narrowest link.
};

struct RingClosure {
  bool closes = true;         ///< Every hop, the closing one too, has a route.
  std::vector<RingHop> hops;  ///< Rank r to r + 1; a ring of one rank has none.
  int worst_hop = -1;         ///< The least share, then the greatest latency, then the first.
  /// The class of the narrowest links of all hops where it is one and the same, else empty.
  std::string common_class;
};

/// `processors`: the node of each rank, in ring order.
RingClosure check_ring(const Topology& topology, const std::vector<int>& processors);

/// "closes over nvlink; worst hop 3 -> 4: 6.25 GB/s, NIC node0.nic0 shared by 4 hops".
std::string describe(const RingClosure& closure, const Topology& topology);

}  // namespace ring
