// Topology: processors, switches and NICs, and the links between them, as a Boost.Graph.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/units.h"

namespace ring {

enum class NodeKind { kCore, kGpu, kSwitch, kPcieSwitch, kNic, kHost };
std::string_view name(NodeKind kind);

struct Node {
  std::string name;
  NodeKind kind = NodeKind::kGpu;
  int host = 0;  ///< Number of the machine it is in.
  /// What all traffic through the node shares; 0: as much as its links carry.
  double backplane_bytes_per_s = 0;
};

/// One direction of a link; two directions that share one capacity carry the same `duplex_group`.
struct Link {
  int from = 0, to = 0;    ///< Node numbers.
  double bytes_per_s = 0;  ///< 0: the link is down, and no route uses it.
  Picoseconds latency_ps = 0;
  int duplex_group = -1;   ///< -1: full duplex, this direction has a capacity of its own.
  std::string link_class;  ///< "nvlink", "pcie", "nic", "memory"; names its calibration.
  bool is_calibrated = false;
};

/// A path: link numbers in order, its latency and its narrowest capacity. From a node to itself it
/// has no links, no latency and a capacity of 0 (no limit).
struct Route {
  std::vector<int> links;
  Picoseconds latency_ps = 0;
  double bytes_per_s = 0;
};

/// Value type over an adjacency list. A route passes through another processor (GPU or core) only
/// where there is no way round: GPUs of a cube mesh do not forward while they share a PCIe tree,
/// those of a torus must. Then a route has the fewest hops, then the least latency. Among
/// equals every node forwards to the neighbour from which the rest of the path is widest at its
/// narrowest link, then to the smallest node number, then over the smallest link number; so the
/// choice depends on the node and the destination only, and is the same every time.
class Topology {
 public:
  Topology();
  Topology(const Topology&);
  Topology& operator=(const Topology&);
  Topology(Topology&&) noexcept;
  Topology& operator=(Topology&&) noexcept;
  ~Topology();

  /// Returns the number of the node. Throws Error(kUsage) for a negative backplane.
  int add_node(Node node);
  /// One direction; returns its number. Throws Error(kUsage) for nodes that do not exist, a link
  /// from a node to itself, a capacity that is not positive, or a negative latency.
  int add_link(Link link);
  /// Both directions, full duplex unless `is_half_duplex`. Throws as `add_link`.
  void connect(int a, int b, double bytes_per_s, Picoseconds latency_ps,
               std::string_view link_class, bool is_half_duplex = false);

  const std::vector<Node>& nodes() const;
  const std::vector<Link>& links() const;
  /// For changing capacities and latencies; `from` and `to` must stay as they are.
  std::vector<Link>& mutable_links();
  std::vector<Node>& mutable_nodes();
  /// Throws Error(kUsage) when there is no path, naming both nodes.
  Route route(int from, int to) const;
  bool has_route(int from, int to) const;

 private:
  struct Graph;
  std::unique_ptr<Graph> graph_;
};

}  // namespace ring
