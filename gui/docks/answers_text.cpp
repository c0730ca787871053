#include "gui/docks/answers_text.h"

#include <fmt/format.h>

#include <cmath>

#include "core/alone_times.h"
#include "core/wording.h"

namespace ring::gui {

namespace {

constexpr double kFelt = 5e-4;  ///< Less would be shown as 0.0 %.

}  // namespace

std::vector<Fact> metric_facts(const Metrics& metrics) {
  std::vector<Fact> facts;
  if (metrics.flops > 0) facts.emplace_back("Speed", format_flop_rate(metrics.flops_per_s));
  facts.emplace_back("Communication / compute", fmt::format("{:.3f}", metrics.communication_ratio));
  facts.emplace_back("Exposed communication",
                     fmt::format("{} of {} a rank", duration_text(metrics.exposed_ps),
                                 duration_text(metrics.communication_ps)));
  facts.emplace_back("Overlap", format_percent(metrics.overlap));
  facts.emplace_back("Bytes sent", format_bytes(metrics.bytes_sent));
  return facts;
}

std::vector<Fact> bound_facts(const StudyPlan& plan) {
  const LowerBounds& bounds = plan.bounds;
  std::vector<Fact> facts;
  facts.emplace_back("Computation", fmt::format("{} on rank {}", duration_text(bounds.compute_ps),
                                                bounds.compute_rank));
  if (bounds.link >= 0) {
    facts.emplace_back("Busiest link",
                       fmt::format("{}, {}", duration_text(bounds.link_ps),
                                   describe_link(plan.machine.topology, bounds.link)));
  }
  if (bounds.memory_ps > 0) {
    facts.emplace_back("Memory bandwidth", duration_text(bounds.memory_ps));
  }
  return facts;
}

std::string memory_text(const StudyPlan& plan) {
  const std::string used = format_bytes(plan.bounds.rank_bytes);
  const Bytes capacity = plan.machine.memory_capacity_bytes;
  if (capacity == 0) return fmt::format("{} a rank; the capacity is not known", used);
  return fmt::format("{} of {} a rank{}", used, format_bytes(capacity),
                     plan.bounds.fits ? "" : ": DOES NOT FIT");
}

std::string measured_text(const RunFile& run, const Study* study) {
  if (!run.measured) return {};
  Picoseconds measured_ps = run.measured->makespan_ps();
  std::string text = fmt::format("measured {}", format_time(measured_ps));
  if (run.measured_steps_ps.size() > 1) {
    text += fmt::format(", the median of {} runs", run.measured_steps_ps.size());
  }
  if (!run.measured->is_complete) text += ", a partial run";
  if (study != nullptr && measured_ps > 0 && run.measured->is_complete) {
    const double error =
        static_cast<double>(study->result.makespan_ps) / static_cast<double>(measured_ps) - 1;
    text += fmt::format("; predicted against measured {}", signed_percent(error));
  }
  return text;
}

std::vector<Fact> effect_facts(const WhatIf& what_if) {
  std::vector<Fact> facts;
  for (const Effect& effect : what_if.effects) {
    const bool is_felt = std::abs(effect.relative) >= kFelt;
    facts.emplace_back(fmt::format("{} {}", effect.parameter, effect.change),
                       !effect.can_finish ? "cannot finish"
                       : !is_felt         ? "nothing"
                                          : fmt::format("{}  ({})", signed_percent(effect.relative),
                                                        format_time(effect.makespan_ps)));
  }
  return facts;
}

std::vector<Fact> statistics_facts(const SliceStatistics& statistics) {
  const auto line = [](const DurationStatistics& of) {
    return fmt::format("{} ops, sum {}, mean {}, p50 {}, p95 {}, p99 {}, max {}", of.count,
                       duration_text(of.sum_ps),
                       duration_text(static_cast<Picoseconds>(of.mean_ps)),
                       duration_text(of.p50_ps), duration_text(of.p95_ps), duration_text(of.p99_ps),
                       duration_text(of.max_ps));
  };
  std::vector<Fact> facts;
  facts.emplace_back("all", line(statistics.work));
  for (const KindStatistics& kind : statistics.kinds) {
    facts.emplace_back(std::string(name(kind.kind)), line(kind.work));
    if (kind.wait.count > 0) {
      facts.emplace_back(std::string(name(kind.kind)) + ", waiting", line(kind.wait));
    }
  }
  return facts;
}

}  // namespace ring::gui
