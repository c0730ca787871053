// Kernel points: what published kernel benchmarks measured, one call each, read from CSV files.
#pragma once

#include <string>
#include <vector>

#include "core/formats/csv_table.h"
#include "core/tile_kernel.h"

namespace ring {

/// One timed call. A forward+backward row has the time of both.
struct KernelPoint {
  enum class Pass { kForward, kBackward, kBoth };
  std::string id;
  Pass pass = Pass::kForward;
  int64_t batch = 1, heads = 1, kv_heads = 1, head_dim = 128, seq = 0;
  bool is_causal = false;
  double seconds = 0;
};

/// Which rows of a file: exact values of its columns gpu and impl, a head dim, and a dtype that
/// starts with `dtype`. Sliding windows and unequal head dims are left out.
struct KernelPointFilter {
  std::string gpu, impl, dtype;
  int64_t head_dim = 128;
};
std::vector<KernelPoint> kernel_points(const CsvTable& table, const KernelPointFilter& filter);

/// The work of a point, as cost_model gives it for one op.
TileWork work_of(const KernelPoint& point);
/// Seconds of a point by kernels of its head dim. `backward` is not used for forward points.
double seconds_of(const KernelPoint& point, const TileKernel& forward, const TileKernel& backward);

}  // namespace ring
