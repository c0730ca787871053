// Report: how problems, metrics and comparisons are shown, the same in every verb.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/blame.h"
#include "core/comparison.h"
#include "core/formats/run_json.h"
#include "core/metrics.h"
#include "core/problem.h"
#include "core/tuning.h"
#include "core/wording.h"
#include "experiments/style.h"
#include "kernels/machine_choice.h"

namespace ring {

/// Label and text of the lines that head or end a report, aligned.
struct ReportLine {
  std::string label, text;
  Tone tone = Tone::kPlain;
};
std::string lines_text(const std::vector<ReportLine>& lines, const Style& style);

/// The lines that every report begins with: problem, tuning, and machine if one is known.
std::vector<ReportLine> setup_lines(const RingProgram& program,
                                    const std::optional<MachineChoice>& machine);

/// Throughput, ratio, exposed communication, overlap and balance as lines.
std::vector<ReportLine> metrics_lines(const Metrics& metrics);

/// One row a rank, at most `limit`; then a line says how many are left out.
std::string rank_table(const Metrics& metrics, const Style& style, size_t limit = 16);

/// Times per op kind and of the whole; `measured` and `predicted` are the column headings.
std::string comparison_table(const Comparison& comparison, const std::string& measured,
                             const std::string& predicted, const Style& style);

}  // namespace ring
