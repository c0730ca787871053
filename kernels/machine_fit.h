// From the samples of all probes to a machine and its calibration.
#pragma once

#include <vector>

#include "core/calibration.h"
#include "core/machine.h"
#include "kernels/probe_collector.h"

namespace ring {

/// Fits what can be fitted from the samples there are; a cost without enough samples stays unknown.
void fit_machine(const std::vector<const ProbeCollector*>& collectors, int cores, Machine& machine,
                 Calibration& calibration);

}  // namespace ring
