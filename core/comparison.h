// Comparison of two timelines of the same program, op by op: usually measured and predicted.
#pragma once

#include <vector>

#include "core/metrics.h"
#include "core/timeline.h"

namespace ring {

struct OpDifference {
  OpId op;
  OpKind kind;
  Picoseconds duration_ps;  ///< Predicted minus measured, of [start, end).
  Picoseconds end_ps;       ///< Predicted minus measured.
  double relative;          ///< Of the duration; 0 when both are 0.
};

struct KindSummary {
  OpKind kind;
  int64_t count = 0;
  Picoseconds measured_ps = 0, predicted_ps = 0;  ///< Sums of durations.
  double median_relative = 0;
};

struct Comparison {
  Metrics measured, predicted;
  double makespan_error = 0;      ///< predicted / measured - 1.
  std::vector<OpDifference> ops;  ///< In order of op id; only ops that both have.
  std::vector<KindSummary> kinds;
  int64_t only_measured = 0, only_predicted = 0;
};

/// Throws Error(kUsage) when the timelines are of different programs (ranks or op kinds differ).
Comparison compare(const Timeline& measured, const Timeline& predicted);

}  // namespace ring
