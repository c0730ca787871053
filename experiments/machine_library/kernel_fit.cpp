#include "experiments/machine_library/kernel_fit.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/fit.h"

namespace ring {
namespace {

constexpr double kFirstStep = 0.5;     ///< From a guess.
constexpr double kStepFromFit = 0.06;  ///< From the fit to nearly the same points.

double& value_of(TileKernel& kernel, KernelParameter parameter) {
  switch (parameter) {
    case KernelParameter::kPerPair:
      return kernel.per_pair_s;
    case KernelParameter::kPerTile:
      return kernel.per_tile_s;
    case KernelParameter::kPerRowDim:
      return kernel.per_row_dim_s;
    case KernelParameter::kLaunch:
      return kernel.launch_s;
    case KernelParameter::kAlone:
      return kernel.alone_speed;
  }
  return kernel.launch_s;
}

double seconds_by(const KernelPoint& point, const TileKernel& kernel, const TileKernel* forward) {
  return seconds_of(point, forward != nullptr ? *forward : kernel, kernel);
}

double squared_error(std::span<const KernelPoint> points, const TileKernel& kernel,
                     const TileKernel* forward) {
  double sum = 0;
  for (const KernelPoint& point : points) {
    const double error = std::log(seconds_by(point, kernel, forward) / point.seconds);
    sum += error * error;
  }
  return sum;
}

/// Tries factors up and down on one parameter after the other, with ever smaller steps.
TileKernel search(std::span<const KernelPoint> points, TileKernel kernel,
                  std::span<const KernelParameter> parameters, const TileKernel* forward,
                  double first_step) {
  constexpr double kLastStep = 0.003;
  double best = squared_error(points, kernel, forward);
  for (double step = first_step; step > kLastStep;) {
    bool has_moved = false;
    for (const KernelParameter parameter : parameters) {
      for (const double factor : {1 + step, 1 / (1 + step)}) {
        TileKernel tried = kernel;
        value_of(tried, parameter) *= factor;
        tried.alone_speed =
            std::clamp(tried.alone_speed, 1.0, static_cast<double>(tried.slots_per_unit));
        const double error = squared_error(points, tried, forward);
        if (error >= best) continue;
        best = error;
        kernel = tried;
        has_moved = true;
        break;
      }
    }
    if (!has_moved) step /= 2;
  }
  return kernel;
}

/// Four digits are more than the data has; they keep files and their bytes the same everywhere.
double rounded(double value) {
  if (value == 0) return 0;
  const double scale = std::pow(10, 3 - std::floor(std::log10(std::abs(value))));
  return std::round(value * scale) / scale;
}

}  // namespace

KernelFit fit_kernel(std::span<const KernelPoint> points, const TileKernel& start,
                     std::span<const KernelParameter> parameters, const TileKernel* forward,
                     bool leave_one_out) {
  RING_ASSERT(!points.empty());
  KernelFit fit;
  fit.kernel = search(points, start, parameters, forward, kFirstStep);
  for (const KernelParameter parameter : parameters) {
    value_of(fit.kernel, parameter) = rounded(value_of(fit.kernel, parameter));
  }
  std::vector<double> errors;
  for (const KernelPoint& point : points) {
    fit.fitted_s.push_back(seconds_by(point, fit.kernel, forward));
    errors.push_back(std::abs(fit.fitted_s.back() / point.seconds - 1));
  }
  fit.quality.fitted_samples = static_cast<int64_t>(points.size());
  fit.quality.fitted_median = median(errors);
  fit.quality.fitted_worst = *std::max_element(errors.begin(), errors.end());
  if (!leave_one_out) return fit;
  for (size_t left = 0; left < points.size(); ++left) {
    std::vector<KernelPoint> others(points.begin(), points.end());
    others.erase(others.begin() + static_cast<ptrdiff_t>(left));
    const TileKernel kernel = search(others, fit.kernel, parameters, forward, kStepFromFit);
    fit.left_out_errors.push_back(
        std::abs(seconds_by(points[left], kernel, forward) / points[left].seconds - 1));
  }
  return fit;
}

TileKernel scaled(TileKernel kernel, double factor) {
  kernel.per_pair_s = rounded(kernel.per_pair_s * factor);
  kernel.per_tile_s = rounded(kernel.per_tile_s * factor);
  kernel.per_row_dim_s = rounded(kernel.per_row_dim_s * factor);
  return kernel;
}

double fit_scale(std::span<const KernelPoint> points, const TileKernel& forward,
                 const TileKernel& backward) {
  double factor = 1;
  for (int round = 0; round < 8; ++round) {
    double sum = 0;
    for (const KernelPoint& point : points) {
      const double seconds = seconds_of(point, scaled(forward, factor), scaled(backward, factor));
      sum += std::log(point.seconds / seconds);
    }
    factor *= std::exp(sum / static_cast<double>(points.size()));
  }
  return factor;
}

}  // namespace ring
