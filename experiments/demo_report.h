// The table and the document of `demo`: what was predicted, what was measured, how far apart.
#pragma once

#include <string>
#include <vector>

#include "experiments/demo_configurations.h"
#include "experiments/json.h"
#include "experiments/measurement_rounds.h"
#include "experiments/style.h"
#include "kernels/measurement.h"
#include "kernels/verify.h"
#include "sim/prediction.h"

namespace ring {

struct DemoRow {
  DemoConfiguration configuration;
  Prediction prediction;
  Measurement measurement;
  Metrics measured;
  Verification verification;

  Picoseconds predicted_ps() const { return prediction.result.makespan_ps; }
  /// predicted / measured - 1.
  double error() const;
  bool is_inside_interval() const;
};

struct DemoSummary {
  int configurations = 0;
  double median_abs_error = 0, worst_abs_error = 0;  ///< Fractions.
  double interval_coverage = 0;                      ///< Share of medians inside their interval.
  int wrong_results = 0;
};
DemoSummary summarize(const std::vector<DemoRow>& rows);

std::string demo_table(const std::vector<DemoRow>& rows, const Style& style);
std::string summary_text(const DemoSummary& summary, const Steadiness& steadiness,
                         const Style& style);
/// `summary`, `steadiness` and `rows` of the document.
void add_demo_json(Json& document, const std::vector<DemoRow>& rows, const Steadiness& steadiness);

}  // namespace ring
