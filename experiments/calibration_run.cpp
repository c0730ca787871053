#include "experiments/calibration_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/units.h"
#include "experiments/progress.h"
#include "experiments/table.h"
#include "kernels/cuda/gpu_probes.h"
#include "kernels/cuda/gpu_session.h"
#include "kernels/cuda/nccl_log.h"
#include "kernels/speed_check.h"

namespace ring {

namespace {

/// A calibration whose speed checks differ by more than this was disturbed.
constexpr double kSteadyRatio = 1.25;

/// Costs of single elements are far below a nanosecond, which format_time would round away.
std::string seconds_text(double seconds) {
  if (std::abs(seconds) < 1e-9) return fmt::format("{:.3g} ps", seconds * 1e12);
  return format_time(picoseconds_from_seconds(seconds));
}

/// The name of a parameter ends in its unit.
std::string value_text(const std::string& parameter, double value) {
  if (parameter.ends_with("bytes_per_s")) return format_bandwidth(value);
  if (parameter.ends_with("_s")) return seconds_text(value);
  if (parameter.ends_with("_bytes")) return format_bytes(std::llround(value));
  return fmt::format("{:.3g}", value);
}

}  // namespace

CalibrationResult run_calibration(VerbContext& context, CalibrationOptions options,
                                  const std::optional<GpuCalibration>& gpu) {
  Progress progress(context.console, "calibrate");
  options.interrupt = &context.is_interrupted;
  options.on_progress = [&progress](const CalibrationProgress& now) {
    progress.update(now.done, now.probe);
  };
  if (!gpu) return calibrate(options);
  const cuda::NcclLog nccl;
  // Every device has a rank, which only exchanges need.
  const int ranks = gpu->carrier == cuda::Carrier::kExchanges
                        ? std::max(cuda::make_cuda_runtime()->device_count(), 2)
                        : 1;
  const auto runtime = cuda::make_runtime_for(gpu->carrier, ranks, gpu->kernels);
  CalibrationResult result = cuda::calibrate_gpu(*runtime, options, {.carrier = gpu->carrier});
  result.machine.context.merge(nccl.facts());
  return result;
}

std::string unsteady_text(const Calibration& calibration) {
  std::vector<double> seconds;
  for (const CalibrationSample& sample : calibration.samples) {
    if (sample.probe == kSpeedProbe)
      seconds.insert(seconds.end(), sample.seconds.begin(), sample.seconds.end());
  }
  if (seconds.empty()) return {};
  std::sort(seconds.begin(), seconds.end());
  // The fastest tenth stands for the machine left alone; the slowest may be a single mishap.
  const double fast = seconds[seconds.size() / 10];
  const double slow = seconds[seconds.size() - 1 - seconds.size() / 10];
  if (fast <= 0 || slow <= kSteadyRatio * fast) return {};
  return fmt::format(
      "the cores changed their speed by {:.1f} times meanwhile, so the profile is rough: close "
      "other "
      "programs and calibrate again",
      slow / fast);
}

std::string calibration_text(const CalibrationResult& result, const Style& style) {
  Table parameters;
  parameters.column("parameter", Align::kLeft).column("value").column("90 % interval");
  for (const auto& [name, parameter] : result.calibration.parameters) {
    parameters.row({name, value_text(name, parameter.value),
                    fmt::format("{} .. {}", value_text(name, parameter.low),
                                value_text(name, parameter.high))});
  }
  Table fits;
  fits.column("probe", Align::kLeft).column("fitted").column("median error").column("worst");
  fits.column("held out").column("median error").column("worst");
  for (const auto& [name, fit] : result.calibration.fits) {
    const bool has_held_out = fit.held_out_samples > 0;
    fits.row({name,
              std::to_string(fit.fitted_samples),
              format_percent(fit.fitted_median),
              format_percent(fit.fitted_worst),
              std::to_string(fit.held_out_samples),
              {has_held_out ? format_percent(fit.held_out_median) : "-", Tone::kStrong},
              has_held_out ? format_percent(fit.held_out_worst) : "-"});
  }
  return parameters.text(style) + "\n" + fits.text(style);
}

}  // namespace ring
