// Kernel fit: the parameters of a tile kernel from published kernel times.
#pragma once

#include <span>
#include <vector>

#include "core/calibration.h"
#include "experiments/machine_library/kernel_points.h"

namespace ring {

/// Parameters of a tile kernel that a fit may move; tiles and slots stay.
enum class KernelParameter { kPerPair, kPerTile, kPerRowDim, kLaunch, kAlone };

struct KernelFit {
  TileKernel kernel;
  FitQuality quality;            ///< Of the points it was fitted to.
  std::vector<double> fitted_s;  ///< By point.
  /// Leave-one-out: absolute relative error of each point by a fit to all others. Empty when not
  /// asked for.
  std::vector<double> left_out_errors;
};

/// Minimizes the squared log errors over `parameters` by coordinate search from `start`, whose
/// moved parameters must be positive. Forward points use the fitted kernel; backward points too,
/// as the backward kernel; points of both passes take `forward` for the part that is known.
KernelFit fit_kernel(std::span<const KernelPoint> points, const TileKernel& start,
                     std::span<const KernelParameter> parameters, const TileKernel* forward,
                     bool leave_one_out);

/// One factor on pair, tile and row times of both kernels that brings them nearest to the points:
/// the same program on another GPU.
double fit_scale(std::span<const KernelPoint> points, const TileKernel& forward,
                 const TileKernel& backward);

/// A kernel with its pair, tile and row times multiplied.
TileKernel scaled(TileKernel kernel, double factor);

}  // namespace ring
