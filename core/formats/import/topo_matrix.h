// The output of `nvidia-smi topo -m` and its relatives: which devices a host has, how they are
// joined.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/formats/findings.h"
#include "core/formats/import/hop_class.h"

namespace ring {

enum class TopoDeviceKind { kGpu, kNic, kOther };

struct TopoDevice {
  std::string name;   ///< "GPU0", "NIC3", "mlx5_1".
  std::string alias;  ///< What the NIC legend calls it; may be empty.
  TopoDeviceKind kind = TopoDeviceKind::kGpu;
  std::string cpu_affinity;  ///< "0-31,64-95"; empty when not given.
  std::vector<int> numa;     ///< NUMA nodes; several where memory has nodes of its own.
};

/// Whether a GPU may read and write the memory of another; from `topo -p2p`.
enum class PeerAccess { kUnknown, kYes, kNo };

struct TopoMatrix {
  std::string tool;                 ///< "nvidia-smi topo -m", "nvidia-smi topo -p2p" or "rocm-smi".
  std::vector<TopoDevice> devices;  ///< In the order of the columns.
  /// hops[i][j] between devices i and j; all unknown when the file has no link matrix.
  std::vector<std::vector<HopClass>> hops;
  std::vector<std::vector<PeerAccess>> peer_access;       ///< Empty when the file does not say.
  std::vector<std::vector<int>> rocm_weights, rocm_hops;  ///< Empty unless from rocm-smi.
  Findings findings;

  bool has_links() const;
  std::vector<size_t> of_kind(TopoDeviceKind kind) const;
};

/// Finds the matrices in a text that may hold prompts, legends, prose and other tables. Throws
/// Error(kUsage) with file:line when there is none, a row is cut, a cell is not a link class, or
/// the two cells of a pair contradict each other.
TopoMatrix parse_topo_matrix(std::string_view text, const std::string& file);

/// Adds one finding for each link class: how many pairs of GPUs have it.
void add_pair_findings(TopoMatrix& matrix, int64_t line);

}  // namespace ring
