// Link costs: start and rate of a message per class of link, fitted to published sweeps or derived.
#pragma once

#include <map>
#include <string>

#include "core/calibration.h"
#include "core/machine.h"
#include "experiments/machine_library/gpu_specs.h"

namespace ring {

struct LinkCost {
  ByteCost cost;           ///< Of one message between two GPUs over this class of link.
  bool is_fitted = false;  ///< To a sweep of this very link; else derived.
  std::string source;
};

struct LinkCosts {
  LinkCost a100_nvlink;                  ///< SendRecv sweep of 8 A100, and a small message.
  LinkCost ndr_nic;                      ///< SendRecv sweep over 400 Gb/s NICs, 2 and 4 nodes.
  double hopper_nvlink_bytes_per_s = 0;  ///< Ring all-gather on 8 H200.
  double roce_bytes_per_s = 0;           ///< All-reduce over 8 NICs of 400 Gb/s with RoCE.
  double hdr_bytes_per_s = 0;            ///< What a 200 Gb/s NIC reaches.
  Calibration calibration;               ///< Probes "nvlink" and "nic".
};

/// Reads nccl-links.csv. Throws Error(kUsage) when a row that is needed is missing.
LinkCosts fit_links(const std::string& folder);

/// NVLink of a GPU: as fitted on A100 or Hopper, in proportion to its NVLink rate.
LinkCost nvlink_of(const LinkCosts& costs, const GpuSpec& gpu);

}  // namespace ring
