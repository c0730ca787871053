// ShapeBox: builds machines of GPUs, switches, PCIe and NICs, and the network between them.
#pragma once

#include <utility>
#include <vector>

#include "core/topology.h"

namespace ring {

/// Capacities are those of one direction; latencies those of one link.
struct BoxSpec {
  int gpus = 8;
  double nvlink_bytes_per_s = 0;  ///< GPU to NVSwitch; 0: there is none.
  Picoseconds nvlink_latency_ps = 0;
  /// GPU pairs joined directly, with the number of NVLinks, each of `mesh_link_bytes_per_s`.
  struct MeshEdge {
    int a, b, links;
  };
  std::vector<MeshEdge> mesh;
  double mesh_link_bytes_per_s = 0;
  /// PCIe: GPUs share a switch with their NIC; switches hang on `sockets` hosts. 0: no PCIe; one
  /// NIC then sits on the NVSwitch, several on ports of the GPUs nearest to them.
  double pcie_bytes_per_s = 0;
  Picoseconds pcie_latency_ps = 0;
  int gpus_per_pcie_switch = 1;
  int sockets = 2;
  double socket_bytes_per_s = 0;
  Picoseconds socket_latency_ps = 0;
  int nics = 0;
  double nic_bytes_per_s = 0;
  Picoseconds nic_latency_ps = 0;
};

/// NIC j of every box is on rail switch j; with several rails, a spine joins them with the
/// capacity of all NICs of a rail over `oversubscription`.
struct NetworkSpec {
  int nodes = 1;
  double oversubscription = 1;
};

struct Cluster {
  Topology topology;
  std::vector<int> gpus;  ///< Box after box.
};

/// Throws Error(kUsage) when several boxes have no NIC to meet over.
Cluster build_cluster(const BoxSpec& box, const NetworkSpec& network);

}  // namespace ring
