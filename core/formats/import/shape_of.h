// Shapes of imported topologies: what nvidia-smi, rocm-smi and NCCL say about a host, as a graph.
#pragma once

#include <string>

#include "core/formats/import/nccl_xml.h"
#include "core/formats/import/topo_matrix.h"
#include "core/topology_shapes.h"

namespace ring {

/// Capacities of one direction that the file does not state. 0: assumed, and said so.
struct ShapeRates {
  double nvlink_bytes_per_s = 0;  ///< Of one NVLink.
  double xgmi_bytes_per_s = 0;    ///< Of one xGMI link.
  double pcie_bytes_per_s = 0;    ///< Of a device.
  double nic_bytes_per_s = 0;
  int nodes = 1;  ///< So many hosts like this one; NIC j of each on rail j.
};

/// The devices of one host as a topology: GPUs joined by NVLink or xGMI directly, or over a switch
/// where they have more links between them than a GPU has ports; PCIe as the tree that PIX, PXB,
/// PHB, NODE, SYS and NUMA nodes describe. PCIe between GPUs of which the file tells nothing but
/// NVLink is left out. Ranks are GPUs in the order of the file. What was assumed is appended to
/// `findings`. Throws Error(kUsage) when there is no GPU, nothing that joins them is known, or
/// there are several nodes and no NIC.
Shape shape_of(const TopoMatrix& matrix, const std::string& name, const ShapeRates& rates,
               Findings& findings);
Shape shape_of(const NcclTopology& topology, const std::string& name, const ShapeRates& rates,
               Findings& findings);

/// "a100", "h100" or "v100" for the compute capability of the GPUs; empty when it is not stated or
/// another.
std::string gpu_preset_of(const NcclTopology& topology);

}  // namespace ring
