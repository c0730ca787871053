// Where a calibration is kept: the machine profile that it made, as a file.
#pragma once

#include <string>

#include "kernels/probes.h"

namespace ring {

/// Writes the profile and returns the path. A partial one goes to "PATH.partial", so that a whole
/// one is not lost. Throws Error(kRunFailed).
std::string write_calibration(const CalibrationResult& result, const std::string& path);

}  // namespace ring
