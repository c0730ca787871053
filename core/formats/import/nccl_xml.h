// NCCL and RCCL XML files: the topology of a host, and the channels that were searched on one.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/formats/findings.h"
#include "core/formats/import/hop_class.h"

namespace ring {

/// A GPU of a topology file.
struct NcclGpu {
  std::string bus_id;
  int numa = -1;
  int dev = -1;  ///< -1: told by its PCI class only.
  int rank = -1;
  int sm = 0;                        ///< 90 for sm_90; 0: not stated.
  std::map<std::string, int> links;  ///< NVLinks or xGMI by target bus id.
  double pcie_bytes_per_s = 0;       ///< Of the narrowest step to the host; 0: unknown.
};

struct NcclNic {
  std::string bus_id;
  std::string name;  ///< "mlx5_0"; empty when told by its PCI class only.
  int numa = -1;
  double bytes_per_s = 0;  ///< 0: unknown.
};

struct NcclTopology {
  std::vector<NcclGpu> gpus;                        ///< In order of rank, or of the file.
  std::vector<NcclNic> nics;                        ///< In order of the file.
  std::vector<std::vector<HopClass>> gpu_hops;      ///< Between GPUs.
  std::vector<std::vector<HopClass>> gpu_nic_hops;  ///< [gpu][nic].
  int pci_devices = 0;                              ///< All of them, known or not.
  int numa_nodes = 0;
  Findings findings;
};

struct NcclChannel {
  std::vector<int> gpus;  ///< Device numbers in order.
  std::vector<std::string> nets;
};

struct NcclGraph {
  int id = -1;
  int pattern = 0;
  std::string algorithm;                    ///< By id: "ring", "tree", "collnet", "nvls".
  std::string pattern_name;                 ///< "ring", "balanced tree", ...
  double speed_intra = 0, speed_inter = 0;  ///< GB/s of a channel.
  std::string type_intra, type_inter;
  std::vector<NcclChannel> channels;
};

struct NcclGraphs {
  std::vector<NcclGraph> graphs;
  Findings findings;
};

/// Both throw Error(kUsage) with file (and offset as line:column) for text that is no XML, another
/// root element, nesting deeper than 64, and document types, which entity bombs need.
NcclTopology parse_nccl_topology(std::string_view text, const std::string& file);
NcclGraphs parse_nccl_graphs(std::string_view text, const std::string& file);

}  // namespace ring
