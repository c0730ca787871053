#include "experiments/demo_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/fit.h"
#include "core/formats/program_json.h"
#include "experiments/report.h"
#include "experiments/report_json.h"
#include "experiments/table.h"

namespace ring {

double DemoRow::error() const {
  const auto measured_ps = static_cast<double>(measurement.median_ps());
  return static_cast<double>(predicted_ps()) / measured_ps - 1;
}

bool DemoRow::is_inside_interval() const {
  const Picoseconds median_ps = measurement.median_ps();
  return median_ps >= prediction.interval.low_ps && median_ps <= prediction.interval.high_ps;
}

DemoSummary summarize(const std::vector<DemoRow>& rows) {
  DemoSummary summary;
  std::vector<double> errors;
  int inside = 0;
  for (const DemoRow& row : rows) {
    errors.push_back(std::abs(row.error()));
    inside += row.is_inside_interval() ? 1 : 0;
    summary.wrong_results += row.verification.is_right() ? 0 : 1;
  }
  summary.configurations = static_cast<int>(rows.size());
  if (rows.empty()) return summary;
  summary.median_abs_error = median(errors);
  summary.worst_abs_error = *std::max_element(errors.begin(), errors.end());
  summary.interval_coverage = static_cast<double>(inside) / static_cast<double>(rows.size());
  return summary;
}

namespace {

/// "0.012 / 0.013": predicted, then measured.
std::string both(const std::string& predicted, const std::string& measured) {
  return fmt::format("{} / {}", predicted, measured);
}

Cell error_cell(const DemoRow& row) {
  const double size = std::abs(row.error());
  return {signed_percent(row.error()), size <= 0.1    ? Tone::kGood
                                       : size <= 0.25 ? Tone::kWarn
                                                      : Tone::kBad};
}

/// One run says nothing of the spread.
std::string time_and_spread(const Measurement& measured) {
  const std::string time = format_time(measured.median_ps());
  if (measured.steps_ps.size() < 2) return time;
  return fmt::format("{} ± {}", time, format_percent(measured.spread()));
}

}  // namespace

std::string demo_table(const std::vector<DemoRow>& rows, const Style& style) {
  Table table;
  table.column("configuration", Align::kLeft).column("predicted").column("90 % interval");
  table.column("measured").column("error").column("comm/compute").column("exposed");
  table.column("overlap").column("result", Align::kLeft);
  for (const DemoRow& row : rows) {
    const Metrics& predicted = row.prediction.result.metrics;
    const Metrics& measured = row.measured;
    const PredictedInterval& interval = row.prediction.interval;
    table.row(
        {row.configuration.name,
         format_time(row.predicted_ps()),
         {fmt::format("{} .. {}", format_time(interval.low_ps), format_time(interval.high_ps)),
          row.is_inside_interval() ? Tone::kPlain : Tone::kWarn},
         time_and_spread(row.measurement),
         error_cell(row),
         both(fmt::format("{:.3f}", predicted.communication_ratio),
              fmt::format("{:.3f}", measured.communication_ratio)),
         both(duration_text(predicted.exposed_ps), duration_text(measured.exposed_ps)),
         both(format_percent(predicted.overlap), format_percent(measured.overlap)),
         row.verification.is_right() ? Cell("right", Tone::kGood) : Cell("WRONG", Tone::kBad)});
  }
  const bool has_spread = std::any_of(rows.begin(), rows.end(), [](const DemoRow& row) {
    return row.measurement.steps_ps.size() > 1;
  });
  std::string legend = "  pairs are predicted / measured; ";
  legend +=
      has_spread ? "± is half the distance from the 10th to the 90th percentile" : "one run each";
  return table.text(style) + legend + "\n";
}

std::string summary_text(const DemoSummary& summary, const Steadiness& steadiness,
                         const Style& style) {
  const auto tone = [](bool is_good) { return is_good ? Tone::kGood : Tone::kWarn; };
  std::vector<ReportLine> lines = {
      {"median error", format_percent(summary.median_abs_error),
       tone(summary.median_abs_error <= 0.1)},
      {"worst error", format_percent(summary.worst_abs_error),
       tone(summary.worst_abs_error <= 0.25)},
      {"in interval",
       fmt::format("{} of {} configurations",
                   std::lround(summary.interval_coverage * summary.configurations),
                   summary.configurations),
       tone(summary.interval_coverage >= 0.8)}};
  const std::string unsteady = describe(steadiness);
  if (!unsteady.empty()) {
    lines.push_back({"steadiness", unsteady, tone(steadiness.kept_slow == 0)});
  }
  return lines_text(lines, style);
}

void add_demo_json(Json& document, const std::vector<DemoRow>& rows, const Steadiness& steadiness) {
  const DemoSummary summary = summarize(rows);
  document["summary"] = {{"configurations", summary.configurations},
                         {"median_abs_error", summary.median_abs_error},
                         {"worst_abs_error", summary.worst_abs_error},
                         {"interval_coverage", summary.interval_coverage},
                         {"wrong_results", summary.wrong_results}};
  if (rows.empty()) {
    for (const char* share : {"median_abs_error", "worst_abs_error", "interval_coverage"}) {
      document["summary"][share] = nullptr;
    }
  }
  document["steadiness"] = {{"is_checked", steadiness.is_checked},
                            {"batches", steadiness.batches},
                            {"made_again", steadiness.made_again},
                            {"kept_slow", steadiness.kept_slow},
                            {"slowest_ratio", steadiness.slowest_ratio}};
  Json list = Json::array();
  for (const DemoRow& row : rows) {
    const Metrics& predicted = row.prediction.result.metrics;
    Json json;
    json["name"] = row.configuration.name;
    json["problem"] = problem_to_json(row.configuration.problem);
    json["tuning"] = tuning_to_json(row.configuration.tuning);
    json["predicted_ps"] = row.predicted_ps();
    json["predicted_low_ps"] = row.prediction.interval.low_ps;
    json["predicted_high_ps"] = row.prediction.interval.high_ps;
    json["measured_ps"] = row.measurement.median_ps();
    json["measured_spread"] = row.measurement.spread();
    json["steps_ps"] = row.measurement.steps_ps;
    json["error"] = row.error();
    json["is_inside_interval"] = row.is_inside_interval();
    json["communication_ratio"] = {{"predicted", predicted.communication_ratio},
                                   {"measured", row.measured.communication_ratio}};
    json["exposed_ps"] = {{"predicted", predicted.exposed_ps},
                          {"measured", row.measured.exposed_ps}};
    json["overlap"] = {{"predicted", predicted.overlap}, {"measured", row.measured.overlap}};
    json["verification"] = verification_json(row.verification);
    list.push_back(std::move(json));
  }
  document["rows"] = std::move(list);
}

}  // namespace ring
