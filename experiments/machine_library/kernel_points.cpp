#include "experiments/machine_library/kernel_points.h"

#include <fmt/format.h>

#include <charconv>

#include "core/error.h"

namespace ring {
namespace {

bool read_number(const std::string& text, double& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

int64_t count_at(const CsvTable& table, size_t row, std::string_view column) {
  double value = 0;
  if (!read_number(table.at(row, column), value) || value < 1) {
    throw_usage(fmt::format("{}:{}: {} is '{}', a count is needed", table.name(), table.line(row),
                            column, table.at(row, column)));
  }
  return static_cast<int64_t>(value);
}

/// Flops as all these benchmarks count them: 4 S^2 H D B forward, half of it causal, backward 2.5
/// times the forward.
double counted_flops(const KernelPoint& point) {
  const auto s = static_cast<double>(point.seq);
  const double forward = 4 * s * s * static_cast<double>(point.heads * point.batch) *
                         static_cast<double>(point.head_dim) / (point.is_causal ? 2 : 1);
  switch (point.pass) {
    case KernelPoint::Pass::kForward:
      return forward;
    case KernelPoint::Pass::kBackward:
      return 2.5 * forward;
    case KernelPoint::Pass::kBoth:
      return 3.5 * forward;
  }
  return forward;
}

bool is_wanted(const CsvTable& table, size_t row, const KernelPointFilter& filter) {
  return table.at(row, "gpu") == filter.gpu && table.at(row, "impl") == filter.impl &&
         table.at(row, "dtype").starts_with(filter.dtype) &&
         table.at(row, "head_dim") == std::to_string(filter.head_dim) &&
         table.at(row, "unit") == "TFLOP/s" && !table.at(row, "note").starts_with("window");
}

}  // namespace

std::vector<KernelPoint> kernel_points(const CsvTable& table, const KernelPointFilter& filter) {
  table.require({"id", "gpu", "impl", "batch", "seqlen", "heads", "kv_heads", "head_dim", "dtype",
                 "causal", "pass", "value", "unit"});
  std::vector<KernelPoint> points;
  for (size_t row = 0; row < table.rows(); ++row) {
    double teraflops = 0;
    if (!is_wanted(table, row, filter) || !read_number(table.at(row, "value"), teraflops)) continue;
    KernelPoint point;
    point.id = table.at(row, "id");
    const std::string& pass = table.at(row, "pass");
    point.pass = pass == "fwd"   ? KernelPoint::Pass::kForward
                 : pass == "bwd" ? KernelPoint::Pass::kBackward
                                 : KernelPoint::Pass::kBoth;
    point.batch = count_at(table, row, "batch");
    point.heads = count_at(table, row, "heads");
    point.kv_heads = count_at(table, row, "kv_heads");
    point.head_dim = filter.head_dim;
    point.seq = count_at(table, row, "seqlen");
    point.is_causal = table.at(row, "causal") == "true";
    point.seconds = counted_flops(point) / (teraflops * 1e12);
    points.push_back(std::move(point));
  }
  return points;
}

TileWork work_of(const KernelPoint& point) {
  TileWork work;
  work.rows = work.keys = point.seq;
  work.edge_rows = point.is_causal ? point.seq - 1 : 0;
  work.visible_pairs = point.is_causal ? point.seq * (point.seq + 1) / 2 : point.seq * point.seq;
  work.planes = point.batch * point.heads;
  work.planes_per_key_plane = point.heads / point.kv_heads;
  work.dim = point.head_dim;
  const auto planes = static_cast<double>(work.planes);
  const double key_planes = planes / static_cast<double>(work.planes_per_key_plane);
  work.bytes = 4 * static_cast<double>(point.seq * point.head_dim) * (planes + key_planes);
  return work;
}

double seconds_of(const KernelPoint& point, const TileKernel& forward, const TileKernel& backward) {
  const TileWork work = work_of(point);
  double seconds = 0;
  if (point.pass != KernelPoint::Pass::kBackward) seconds += forward_tile_seconds(forward, work);
  if (point.pass != KernelPoint::Pass::kForward) seconds += backward_tile_seconds(backward, work);
  return seconds;
}

}  // namespace ring
