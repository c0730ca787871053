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
};

/// One direction of a link; two directions that share one capacity carry the same `duplex_group`.
struct Link {
  int from = 0, to = 0;  ///< Node numbers.
  double bytes_per_s = 0;
  Picoseconds latency_ps = 0;
  int duplex_group = -1;  ///< -1: full duplex, this direction has a capacity of its own.
  std::string link_class;    ///< "nvlink", "pcie", "nic", "memory"; names its calibration.
  bool is_calibrated = false;
};

/// A path: link numbers in order, its latency and its narrowest capacity.
struct Route {
  std::vector<int> links;
  Picoseconds latency_ps = 0;
  double bytes_per_s = 0;
};

/// Value type over an adjacency list. Routes have the fewest hops, then the least latency, then the
/// greatest narrowest bandwidth, then the smallest node numbers; the same every time.
class Topology {
 public:
  Topology();
  Topology(const Topology&);
  Topology& operator=(const Topology&);
  Topology(Topology&&) noexcept;
  Topology& operator=(Topology&&) noexcept;
  ~Topology();

  int add_node(Node node);
  int add_link(Link link);  ///< One direction.
  /// Both directions, full duplex unless `is_half_duplex`.
  void connect(int a, int b, double bytes_per_s, Picoseconds latency_ps,
               std::string_view link_class, bool is_half_duplex = false);

  const std::vector<Node>& nodes() const;
  const std::vector<Link>& links() const;
  std::vector<Link>& mutable_links();
  /// Throws Error(kUsage) when there is no path, naming both nodes.
  Route route(int from, int to) const;
  bool has_route(int from, int to) const;

 private:
  struct Graph;
  std::unique_ptr<Graph> graph_;
};

}  // namespace ring
