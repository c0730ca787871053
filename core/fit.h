// Fits: parameters of costs from measured samples, with intervals and an honest error.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/calibration.h"
#include "core/machine.h"
#include "core/ring_program.h"

namespace ring {

/// One equation: sum_j features[j] * parameter[j] = seconds.
struct FitRow {
  std::vector<double> features;
  double seconds = 0;
};

/// Parameters that are not below 0 and minimize the squared *relative* error, so that a sample of
/// a microsecond counts as much as one of a second. A parameter's interval is the 5th to the 95th
/// percentile over fits of resampled rows (bootstrap with a fixed seed).
struct LinearFit {
  std::vector<FittedParameter> parameters;
  double mean_square = 0;  ///< Of the relative errors of the fitted rows.
  double predict(std::span<const double> features) const;
};

/// Rows must all have the same number of features and positive seconds. Throws Error(kRunFailed)
/// when there are fewer rows than parameters. Without `resamples` an interval is the value alone.
LinearFit fit_relative(std::span<const FitRow> rows, int resamples = 200);

/// Absolute relative errors of the rows that were fitted and of those that were held out.
FitQuality judge(const LinearFit& fit, std::span<const FitRow> fitted,
                 std::span<const FitRow> held_out);

/// A parameter of AttendCost by name; the features of a fit are found by setting one to 1 and the
/// others to 0, so that fit and prediction cannot disagree about the formula.
struct AttendParameter {
  std::string_view name;
  double AttendCost::*member;
};
std::span<const AttendParameter> attend_parameters();
/// Of an attend or backward op. `cache_bytes` as in AttendCost, on which the cost does not depend
/// linearly.
std::vector<double> attend_features(const Problem& problem, const Op& op, double cache_bytes = 0);

/// start + bytes / rate, from a fit of rows with the features (1, bytes).
struct ByteCostFit {
  ByteCost cost;
  FittedParameter start_s, bytes_per_s;
};
ByteCostFit byte_cost(const LinearFit& fit);

/// Middle value; the mean of the two middle ones of an even number. 0 for no values.
double median(std::vector<double> values);
/// Value below which `fraction` of the values lie, linear between neighbours. 0 for no values.
double quantile(std::vector<double> values, double fraction);

}  // namespace ring
