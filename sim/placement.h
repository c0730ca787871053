// Placement: the best ring over a topology, what its hops get, and how many rings fit beside it.
#pragma once

#include <string>
#include <vector>

#include "core/ring_order.h"
#include "core/topology.h"

namespace ring {

/// Hops that are alike: as wide and as long as each other, over as many links.
struct HopLevel {
  double bytes_per_s = 0;  ///< Of a hop that is alone; 0: no limit.
  Picoseconds latency_ps = 0;
  int links = 0;
  std::string label;  ///< As `hop_label` says it, of the first such hop.
  bool operator==(const HopLevel&) const = default;
};

struct PlacedHop {
  int from = 0, to = 0;  ///< Nodes of the topology.
  Route route;
  std::string label;
  int level = 0;                   ///< Into Placement::levels.
  double alone_bytes_per_s = 0;    ///< 0: no limit (one processor).
  double at_once_bytes_per_s = 0;  ///< While all hops of this ring are under way, max-min fair.
  /// While the hops of all rings of the placement are, each ring split into its channels.
  double with_all_bytes_per_s = 0;
};

struct PlacedRing {
  std::vector<int> processors;  ///< Nodes in ring order.
  std::vector<PlacedHop> hops;
  double bytes_per_s = 0;  ///< What every hop gets of what the rings before it have left.
  int channels = 0;        ///< How many channels that is.
  std::string label;       ///< Label of all hops where it is one and the same, else of the worst.
};

struct PlacementOptions {
  /// What one channel needs; 0: one NVLink (25 GB/s) over NVLink, else as much as the ring carries.
  double channel_bytes_per_s = 0;
  int most_rings = 32;
};

struct Placement {
  std::vector<HopLevel> levels;  ///< Best first.
  RingOrder order;               ///< Positions are indices into the processors that were given.
  /// The best ring, and the rings that fit beside it over links as good, taken one after another
  /// from what the rings before have left. Empty when no ring closes.
  std::vector<PlacedRing> rings;
  bool closes_over_nvlink = false;
  double channel_bytes_per_s = 0;
  int channels = 0;  ///< Of all rings together.
  /// What all rings carry together, and what no set of rings can exceed: the least that a processor
  /// can send or receive over links of the classes that the rings use there, or a host can.
  double total_bytes_per_s = 0, bound_bytes_per_s = 0;
};

/// `processors`: different nodes of the topology, at least one. Hops are compared by what they get
/// alone, then by latency, then by how many links they take (on one rail rather than over a spine);
/// rings as `best_ring_order` says, NICs being what hops should not share. Throws Error(kUsage) for
/// processors that are given twice, or more than `kMostPlacedRanks`.
Placement place_ring(const Topology& topology, const std::vector<int>& processors,
                     const PlacementOptions& options = {});

/// The table of all hops between the processors, and the levels that its numbers stand for.
HopTable hop_table(const Topology& topology, const std::vector<int>& processors,
                   std::vector<HopLevel>& levels);

/// Max-min fair rates of flows over routes that are all under way at once, each `flows[i]` times;
/// the sum of those flows.
std::vector<double> rates_at_once(const Topology& topology, const std::vector<Route>& routes,
                                  const std::vector<int>& flows);

}  // namespace ring
