// From the samples of all probes to a machine and its calibration.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/calibration.h"
#include "core/machine.h"
#include "kernels/probe_collector.h"

namespace ring {

/// Fits what can be fitted from the samples there are; a cost without enough samples stays unknown.
void fit_machine(const std::vector<const ProbeCollector*>& collectors, int cores, Machine& machine,
                 Calibration& calibration);

/// What a machine of GPUs is beside its costs.
struct GpuMachineFacts {
  int devices = 1;
  std::string name;
  Bytes memory_bytes = 0;
  /// Pairs of devices by the class of the way between them; samples of messages over one are
  /// called "transfer-CLASS".
  std::map<std::string, std::vector<std::pair<int, int>>> links;
  std::map<std::string, std::string> context;  ///< Versions, multiprocessors.
};

/// As fit_machine, from probes of GPUs. The links of the slowest class lead to a switch; those of
/// faster ones from device to device.
void fit_gpu_machine(const std::vector<const ProbeCollector*>& collectors,
                     const GpuMachineFacts& facts, Machine& machine, Calibration& calibration);

}  // namespace ring
