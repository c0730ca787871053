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
#include "experiments/machine_choice.h"
#include "experiments/style.h"

namespace ring {

/// "8 heads over 2 KV heads of 128, 4096 tokens, causal, bf16, forward".
std::string describe(const Problem& problem);
/// "pass-kv on 4 ranks, zigzag, blocks of 512, whole shards a message, depth 2".
std::string describe(const Tuning& tuning);
/// "between 11.9 ms and 13.1 ms in 90 % of runs".
std::string describe(const PredictedInterval& interval);

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

/// What the time is spent on: the largest shares of the critical path, in one sentence.
std::string bottleneck_sentence(const Blame& blame);

/// Times per op kind and of the whole; `measured` and `predicted` are the column headings.
std::string comparison_table(const Comparison& comparison, const std::string& measured,
                             const std::string& predicted, const Style& style);

/// As format_time, but "0" for no time at all.
std::string duration_text(Picoseconds time_ps);

/// "+3.1 %"; signed, one digit after the point.
std::string signed_percent(double fraction);

}  // namespace ring
