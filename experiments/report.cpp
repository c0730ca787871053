#include "experiments/report.h"

#include <fmt/format.h>

#include <algorithm>

#include "experiments/table.h"

namespace ring {

std::string lines_text(const std::vector<ReportLine>& lines, const Style& style) {
  Table table;
  table.column("", Align::kLeft).column("", Align::kLeft);
  for (const ReportLine& line : lines)
    table.row({{line.label, Tone::kDim}, {line.text, line.tone}});
  return table.text(style);
}

std::vector<ReportLine> setup_lines(const RingProgram& program,
                                    const std::optional<MachineChoice>& machine) {
  std::vector<ReportLine> lines;
  if (program.has_attention) {
    lines.push_back({"problem", describe(program.problem)});
    lines.push_back({"tuning", describe(program.tuning)});
    for (const std::string& note : program.notes) lines.push_back({"plan", note});
  }
  if (machine) {
    lines.push_back({"machine", machine->note, machine->is_stand_in ? Tone::kWarn : Tone::kPlain});
  }
  return lines;
}

std::vector<ReportLine> metrics_lines(const Metrics& metrics) {
  std::vector<ReportLine> lines;
  if (metrics.flops > 0) lines.push_back({"speed", format_flop_rate(metrics.flops_per_s)});
  lines.push_back({"comm/compute", fmt::format("{:.3f}", metrics.communication_ratio)});
  lines.push_back(
      {"exposed",
       fmt::format("{} of {} communication a rank, overlap {}", duration_text(metrics.exposed_ps),
                   duration_text(metrics.communication_ps), format_percent(metrics.overlap))});
  if (metrics.imbalance > 0.02) lines.push_back({"balance", describe_balance(metrics)});
  return lines;
}

std::string rank_table(const Metrics& metrics, const Style& style, size_t limit) {
  Table table;
  table.column("rank").column("compute").column("transfer").column("exposed").column("waiting");
  table.column("finish").column("busy");
  const size_t shown = std::min(limit, metrics.ranks.size());
  for (size_t rank = 0; rank < shown; ++rank) {
    const RankMetrics& row = metrics.ranks[rank];
    table.row({std::to_string(rank), duration_text(row.compute_ps),
               duration_text(row.communication_ps), duration_text(row.exposed_ps),
               duration_text(row.waiting_ps), duration_text(row.finish_ps),
               format_percent(row.busy_share)});
  }
  std::string text = table.text(style);
  const size_t hidden = metrics.ranks.size() - shown;
  if (hidden > 0) text += fmt::format("  and {} more ranks, all of them with --json\n", hidden);
  return text;
}

std::string comparison_table(const Comparison& comparison, const std::string& measured,
                             const std::string& predicted, const Style& style) {
  const auto relative = [](Picoseconds from_ps, Picoseconds to_ps) {
    if (from_ps == 0) return std::string("-");
    return signed_percent(static_cast<double>(to_ps) / static_cast<double>(from_ps) - 1);
  };
  Table table;
  table.column("op", Align::kLeft).column("count").column(measured).column(predicted);
  table.column("error").column("median op error");
  for (const KindSummary& kind : comparison.kinds) {
    table.row({std::string(name(kind.kind)), std::to_string(kind.count),
               format_time(kind.measured_ps), format_time(kind.predicted_ps),
               relative(kind.measured_ps, kind.predicted_ps),
               signed_percent(kind.median_relative)});
  }
  table.row({{"whole run", Tone::kStrong},
             "",
             format_time(comparison.measured.makespan_ps),
             format_time(comparison.predicted.makespan_ps),
             {signed_percent(comparison.makespan_error), Tone::kStrong},
             ""});
  return table.text(style);
}

}  // namespace ring
