// Calibration of this machine as `calibrate` and `demo` do it: with progress, file and table.
#pragma once

#include <string>

#include "experiments/style.h"
#include "experiments/verb.h"
#include "kernels/calibration_file.h"
#include "kernels/probes.h"

namespace ring {

/// Calibrates with a progress line; Ctrl-C ends it early with is_complete false.
/// `device` is "cpu" or "cuda".
CalibrationResult run_calibration(VerbContext& context, CalibrationOptions options,
                                  const std::string& device = "cpu");

/// A sentence where the speed checks say that the cores did not keep their speed; empty: they did.
std::string unsteady_text(const Calibration& calibration);

/// Fitted parameters with their intervals, and how well every probe was fitted.
std::string calibration_text(const CalibrationResult& result, const Style& style);

}  // namespace ring
