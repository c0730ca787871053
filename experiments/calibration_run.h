// Calibration of this machine as `calibrate` and `demo` do it: with progress, file and table.
#pragma once

#include <optional>
#include <string>

#include "experiments/style.h"
#include "experiments/verb.h"
#include "kernels/calibration_file.h"
#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/device_plan.h"
#include "kernels/probes.h"

namespace ring {

/// What a calibration of GPUs is of.
struct GpuCalibration {
  cuda::Carrier carrier = cuda::Carrier::kCopies;
  cuda::AttendKernels kernels = cuda::AttendKernels::kBest;
};

/// Calibrates the cores, or the GPUs, with a progress line; Ctrl-C ends it early with is_complete
/// false.
CalibrationResult run_calibration(VerbContext& context, CalibrationOptions options,
                                  const std::optional<GpuCalibration>& gpu = std::nullopt);

/// A sentence where the speed checks say that the cores did not keep their speed; empty: they did.
std::string unsteady_text(const Calibration& calibration);

/// Fitted parameters with their intervals, and how well every probe was fitted.
std::string calibration_text(const CalibrationResult& result, const Style& style);

}  // namespace ring
