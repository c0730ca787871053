// Machine library: builds the machine files of experiments/machines from published calibration.
#pragma once

#include <string>
#include <vector>

#include "core/formats/machine_json.h"

namespace ring {

/// All machines, by name; the same files in `published` give the same bytes. Throws Error(kUsage)
/// for calibration files that are missing or incomplete.
std::vector<MachineFile> build_machine_library(const std::string& published);

}  // namespace ring
