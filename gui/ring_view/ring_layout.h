// RingLayout: where the nodes of a machine stand in the picture of the ring.
#pragma once

#include <QPointF>
#include <vector>

#include "core/machine.h"

namespace ring::gui {

struct PlacedNode {
  int node = 0;  ///< Into Topology::nodes.
  QPointF at;    ///< In the unit square; y grows downwards.
};

/// A line between two nodes; both directions of a link are one.
struct PlacedLink {
  int a = 0, b = 0;  ///< Node numbers.
  int link = 0;      ///< Number of one of the directions.
};

struct RingLayout {
  std::vector<PlacedNode> nodes;  ///< By node number.
  std::vector<PlacedLink> links;
  std::vector<QPointF>
      ranks;  ///< Where each rank stands: on its processor, unless those are shared.
  double rank_radius = 0.04;
  bool shares_processors = false;  ///< There are more ranks than processors.
};

/// Processors stand on a circle in ring order, those of a host together. Switches and NICs of a
/// host stand between its processors and the middle, what belongs to no host in the middle. Where
/// ranks share processors, the ranks stand on the circle and the processors within it.
RingLayout lay_out_ring(const Machine& machine, int ranks);

}  // namespace ring::gui
