// Calibration of this machine as `calibrate` and `demo` do it: with progress, file and table.
#pragma once

#include <string>

#include "experiments/style.h"
#include "experiments/verb.h"
#include "kernels/probes.h"

namespace ring {

/// Calibrates with a progress line; Ctrl-C ends it early with is_complete false.
CalibrationResult run_calibration(VerbContext& context, CalibrationOptions options);

/// Writes the profile and returns the path. A partial one goes to "PATH.partial", so that a whole
/// one is not lost. Throws Error(kRunFailed).
std::string write_calibration(const CalibrationResult& result, const std::string& path);

/// Fitted parameters with their intervals, and how well every probe was fitted.
std::string calibration_text(const CalibrationResult& result, const Style& style);

}  // namespace ring
