// AnswersText: what the Answers dock says, as plain text made from what core and sim worked out.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/formats/run_json.h"
#include "core/slice_statistics.h"
#include "sim/study.h"

namespace ring::gui {

/// A label and what stands beside it.
using Fact = std::pair<std::string, std::string>;

/// Ratio, exposed communication, overlap, speed.
std::vector<Fact> metric_facts(const Metrics& metrics);
/// What no run can be faster than, and by what.
std::vector<Fact> bound_facts(const StudyPlan& plan);
/// "1.2 GiB of 80.0 GiB a rank"; says when it does not fit.
std::string memory_text(const StudyPlan& plan);
/// "measured 12.3 ms, the prediction is 2.1 % above".
std::string measured_text(const RunFile& run, const Study* study);
/// What +10 % of each resource buys, and other block sizes and depths; "" beside what is not known.
std::vector<Fact> effect_facts(const WhatIf& what_if);
/// Count, sum, mean, p50, p95, p99 and max of a selection.
std::vector<Fact> statistics_facts(const SliceStatistics& statistics);

}  // namespace ring::gui
