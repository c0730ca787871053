#include "core/fit.h"

#include <Eigen/Dense>
#include <algorithm>
#include <array>
#include <cmath>
#include <random>

#include "core/cost_model.h"
#include "core/error.h"

namespace ring {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr uint64_t kResampleSeed = 20240229;

/// Least squares over the columns that are in use.
VectorXd solve_active(const MatrixXd& a, const VectorXd& b, const std::vector<bool>& is_active) {
  std::vector<Index> columns;
  for (size_t j = 0; j < is_active.size(); ++j) {
    if (is_active[j]) columns.push_back(static_cast<Index>(j));
  }
  VectorXd x = VectorXd::Zero(a.cols());
  if (columns.empty()) return x;
  MatrixXd part(a.rows(), static_cast<Index>(columns.size()));
  for (size_t j = 0; j < columns.size(); ++j) part.col(static_cast<Index>(j)) = a.col(columns[j]);
  const VectorXd solution = part.colPivHouseholderQr().solve(b);
  for (size_t j = 0; j < columns.size(); ++j) x[columns[j]] = solution[static_cast<Index>(j)];
  return x;
}

/// The largest step from x towards `target` that keeps all active values at or above 0.
double feasible_step(const VectorXd& x, const VectorXd& target, const std::vector<bool>& active) {
  double step = 1;
  for (Index j = 0; j < x.size(); ++j) {
    if (active[static_cast<size_t>(j)] && target[j] <= 0)
      step = std::min(step, x[j] / (x[j] - target[j]));
  }
  return step;
}

/// Non-negative least squares by active sets (Lawson and Hanson, Solving Least Squares Problems,
/// 1974, chapter 23).
VectorXd non_negative(const MatrixXd& a, const VectorXd& b) {
  const Index n = a.cols();
  std::vector<bool> active(static_cast<size_t>(n), false);
  VectorXd x = VectorXd::Zero(n);
  const double tolerance = 1e-10 * (a.transpose() * b).cwiseAbs().maxCoeff();
  for (Index round = 0; round < 3 * n; ++round) {
    const VectorXd slope = a.transpose() * (b - a * x);
    Index best = -1;
    for (Index j = 0; j < n; ++j) {
      const bool is_better = best < 0 || slope[j] > slope[best];
      if (!active[static_cast<size_t>(j)] && slope[j] > tolerance && is_better) best = j;
    }
    if (best < 0) break;
    active[static_cast<size_t>(best)] = true;
    VectorXd target = solve_active(a, b, active);
    while (true) {
      const double step = feasible_step(x, target, active);
      x += step * (target - x);
      if (step >= 1) break;
      for (Index j = 0; j < n; ++j) {
        if (active[static_cast<size_t>(j)] && x[j] <= 1e-14 * x.cwiseAbs().maxCoeff())
          active[static_cast<size_t>(j)] = false;
      }
      for (Index j = 0; j < n; ++j) {
        if (!active[static_cast<size_t>(j)]) x[j] = 0;
      }
      target = solve_active(a, b, active);
    }
  }
  return x;
}

/// Columns scaled to a largest value of 1, since features differ by many orders of magnitude.
struct Scaled {
  MatrixXd a;
  VectorXd b;
  VectorXd scale;
};

Scaled relative_system(std::span<const FitRow> rows) {
  const auto m = static_cast<Index>(rows.size());
  const auto n = static_cast<Index>(rows.front().features.size());
  Scaled system{MatrixXd(m, n), VectorXd::Ones(m), VectorXd::Ones(n)};
  for (Index i = 0; i < m; ++i) {
    const FitRow& row = rows[static_cast<size_t>(i)];
    RING_ASSERT(static_cast<Index>(row.features.size()) == n && row.seconds > 0);
    for (Index j = 0; j < n; ++j)
      system.a(i, j) = row.features[static_cast<size_t>(j)] / row.seconds;
  }
  for (Index j = 0; j < n; ++j) {
    const double largest = system.a.col(j).cwiseAbs().maxCoeff();
    if (largest > 0) system.scale[j] = 1 / largest;
    system.a.col(j) *= system.scale[j];
  }
  return system;
}

/// Fits of rows drawn with replacement, one column each.
MatrixXd resampled_fits(const Scaled& system, int resamples) {
  std::mt19937_64 random(kResampleSeed);
  const auto m = static_cast<uint64_t>(system.a.rows());
  MatrixXd fits(system.a.cols(), resamples);
  MatrixXd a(system.a.rows(), system.a.cols());
  for (Index resample = 0; resample < resamples; ++resample) {
    for (Index i = 0; i < system.a.rows(); ++i)
      a.row(i) = system.a.row(static_cast<Index>(random() % m));
    fits.col(resample) = non_negative(a, system.b);
  }
  return fits;
}

std::vector<double> relative_errors(const LinearFit& fit, std::span<const FitRow> rows) {
  std::vector<double> errors;
  for (const FitRow& row : rows)
    errors.push_back(std::fabs(fit.predict(row.features) / row.seconds - 1));
  return errors;
}

double worst(const std::vector<double>& values) {
  return values.empty() ? 0 : *std::max_element(values.begin(), values.end());
}

}  // namespace

double LinearFit::predict(std::span<const double> features) const {
  RING_ASSERT(features.size() == parameters.size());
  double sum = 0;
  for (size_t j = 0; j < features.size(); ++j) sum += features[j] * parameters[j].value;
  return sum;
}

LinearFit fit_relative(std::span<const FitRow> rows, int resamples) {
  if (rows.empty() || rows.size() < rows.front().features.size())
    throw Error(ErrorKind::kRunFailed, "too few samples were measured to fit a cost",
                "let the calibration run longer");
  const Scaled system = relative_system(rows);
  const VectorXd scaled = non_negative(system.a, system.b);
  const VectorXd x = scaled.cwiseProduct(system.scale);
  const MatrixXd fits = resampled_fits(system, resamples);
  LinearFit fit;
  fit.mean_square =
      (system.a * scaled - system.b).squaredNorm() / static_cast<double>(system.b.size());
  for (Index j = 0; j < x.size(); ++j) {
    std::vector<double> values = {x[j]};
    for (Index i = 0; i < fits.cols(); ++i) values.push_back(fits(j, i) * system.scale[j]);
    const double low = quantile(values, 0.05), high = quantile(values, 0.95);
    fit.parameters.push_back({x[j], std::min(low, x[j]), std::max(high, x[j])});
  }
  return fit;
}

FitQuality judge(const LinearFit& fit, std::span<const FitRow> fitted,
                 std::span<const FitRow> held_out) {
  const std::vector<double> fitted_errors = relative_errors(fit, fitted);
  const std::vector<double> held_out_errors = relative_errors(fit, held_out);
  FitQuality quality;
  quality.fitted_samples = static_cast<int64_t>(fitted.size());
  quality.held_out_samples = static_cast<int64_t>(held_out.size());
  quality.fitted_median = median(fitted_errors);
  quality.fitted_worst = worst(fitted_errors);
  quality.held_out_median = median(held_out_errors);
  quality.held_out_worst = worst(held_out_errors);
  return quality;
}

std::span<const AttendParameter> attend_parameters() {
  static constexpr std::array<AttendParameter, 8> kParameters = {{
      {"launch_s", &AttendCost::launch_s},
      {"per_pair_s", &AttendCost::per_pair_s},
      {"per_pair_dim_s", &AttendCost::per_pair_dim_s},
      {"per_edge_row_dim_s", &AttendCost::per_edge_row_dim_s},
      {"per_row_dim_s", &AttendCost::per_row_dim_s},
      {"per_far_row_dim_s", &AttendCost::per_far_row_dim_s},
      {"per_start_row_dim_s", &AttendCost::per_start_row_dim_s},
      {"per_key_dim_s", &AttendCost::per_key_dim_s},
  }};
  return kParameters;
}

std::vector<double> attend_features(const Problem& problem, const Op& op, double cache_bytes) {
  std::vector<double> features;
  for (const AttendParameter& parameter : attend_parameters()) {
    AttendCost unit;
    unit.cache_bytes = cache_bytes;
    unit.*parameter.member = 1;
    features.push_back(op.kind == OpKind::kBackward ? backward_seconds(unit, problem, op)
                                                    : attend_seconds(unit, problem, op));
  }
  return features;
}

ByteCostFit byte_cost(const LinearFit& fit) {
  RING_ASSERT(fit.parameters.size() == 2);
  const FittedParameter& per_byte = fit.parameters[1];
  const auto rate = [](double seconds_per_byte) {
    return seconds_per_byte > 0 ? 1 / seconds_per_byte : 0;
  };
  ByteCostFit result;
  result.start_s = fit.parameters[0];
  result.bytes_per_s = {rate(per_byte.value), rate(per_byte.high), rate(per_byte.low)};
  result.cost = {result.start_s.value, result.bytes_per_s.value};
  return result;
}

double median(std::vector<double> values) { return quantile(std::move(values), 0.5); }

double quantile(std::vector<double> values, double fraction) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const double at = fraction * static_cast<double>(values.size() - 1);
  const auto below = static_cast<size_t>(at);
  const size_t above = std::min(below + 1, values.size() - 1);
  const double part = at - static_cast<double>(below);
  return values[below] + part * (values[above] - values[below]);
}

}  // namespace ring
