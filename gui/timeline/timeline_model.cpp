#include "gui/timeline/timeline_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/critical_path.h"
#include "core/error.h"
#include "core/program_text.h"
#include "core/strategy.h"

namespace ring::gui {
namespace {

/// Ranks that send to more others have one curve for all of them.
constexpr int kMostLinksPerRank = 2;

std::shared_ptr<const RingProgram> program_of(const RunFile& run) {
  if (run.identity) {
    return std::make_shared<const RingProgram>(plan(run.identity->problem, run.identity->tuning));
  }
  if (run.program_text.empty()) return nullptr;
  return std::make_shared<const RingProgram>(parse_program(run.program_text));
}

void add_rows(ModelRun& run) {
  const Timeline& timeline = run.timeline();
  run.row_of_slice.assign(timeline.slices.size(), 0);
  for (TimelineRow& row : timeline_rows(timeline)) {
    for (const RowBar& bar : row.bars) {
      run.row_of_slice[bar.slice] = static_cast<uint32_t>(run.rows.size());
      run.classes |= 1U << (bar.is_wait ? kWaitClass : bar_class(timeline.slices[bar.slice].kind));
    }
    run.rows.push_back({row.rank, row.lane, row.overflow, std::move(row.label),
                        row_levels(timeline, row), RowLevels()});
    row.bars = {};
  }
}

void add_critical_path(const RunGraph& graph, ModelRun& run) {
  const Timeline& timeline = run.timeline();
  std::vector<std::vector<LevelBar>> bars(run.rows.size());
  for (const PathSegment& segment : critical_path(graph).segments) {
    if (segment.kind != SegmentKind::kOp) continue;
    const Slice& slice = graph.slice(graph.node(segment.op));
    const auto index = static_cast<uint32_t>(&slice - timeline.slices.data());
    bars[run.row_of_slice[index]].push_back(
        {segment.begin_ps, segment.end_ps, index, bar_class(slice.kind), 255, false});
  }
  for (size_t i = 0; i < bars.size(); ++i) run.rows[i].critical = RowLevels(std::move(bars[i]));
  run.has_critical_path = true;
}

void add_program_facts(ModelRun& run, std::string_view which, std::vector<std::string>& notes) {
  if (!run.data->program) {
    run.flows = OpFlows(run.timeline());
    notes.push_back(
        fmt::format("The program of the {} run is not known: no critical path, no memory.", which));
    return;
  }
  try {
    const RunGraph graph(*run.data->program, run.timeline());
    run.flows = OpFlows(graph);
    add_critical_path(graph, run);
    run.memory = memory_use(*run.data->program, run.timeline());
  } catch (const Error& error) {
    run.flows = OpFlows(run.timeline());
    run.memory.clear();
    notes.push_back(
        fmt::format("The {} run has no critical path and no memory: {}.", which, error.what()));
  }
}

ModelRun model_run(std::shared_ptr<const RunData> data, std::vector<std::string>& notes) {
  ModelRun run;
  run.data = std::move(data);
  run.makespan_ps = run.timeline().makespan_ps();
  const std::string_view which =
      run.timeline().origin == TimelineOrigin::kMeasured ? "measured" : "predicted";
  if (!run.timeline().is_complete) {
    notes.push_back(fmt::format("The {} run did not finish: a part of its ops is missing.", which));
  }
  add_rows(run);
  add_program_facts(run, which, notes);
  run.links = link_rates(run.timeline(), kMostLinksPerRank);
  return run;
}

void add_extent(const ModelRun& run, TimelineModel& model) {
  model.ranks = std::max(model.ranks, run.timeline().ranks);
  model.end_ps = std::max(model.end_ps, run.makespan_ps);
  for (const ModelRow& row : run.rows) {
    if (!row.bars.bars().empty()) {
      model.begin_ps = std::min(model.begin_ps, row.bars.bars().front().begin_ps);
    }
  }
  for (const LinkRate& link : run.links) {
    model.peak_bytes_per_s = std::max(model.peak_bytes_per_s, link.bytes_per_s.peak());
  }
  for (const RankMemoryUse& memory : run.memory) {
    model.peak_memory_bytes = std::max(model.peak_memory_bytes, memory.bytes.peak());
  }
}

void add_differences(TimelineModel& model) {
  const Timeline& measured = model.measured->timeline();
  const Timeline& predicted = model.predicted->timeline();
  model.pairs = TimelinePairs(measured, predicted);
  if (!model.pairs.mismatch().empty()) {
    model.notes.push_back(
        fmt::format("The runs are of different programs: {}. Differences are not shown.",
                    model.pairs.mismatch()));
    return;
  }
  model.drift = drift_curves(measured, predicted, model.pairs);
  for (const StepCurve& curve : model.drift) {
    model.peak_drift_ps = std::max({model.peak_drift_ps, curve.peak(), -curve.lowest()});
  }
}

}  // namespace

std::shared_ptr<const RunData> run_data(const RunFile& run, TimelineOrigin origin,
                                        std::shared_ptr<const RingProgram> program) {
  const auto& timeline = origin == TimelineOrigin::kMeasured ? run.measured : run.predicted;
  if (!timeline) return nullptr;
  if (!program) program = program_of(run);
  return std::make_shared<const RunData>(RunData{run.name, *timeline, std::move(program)});
}

const Slice* TimelineModel::slice(SliceRef ref) const {
  const ModelRun* of = run(ref.origin);
  if (of == nullptr || ref.slice >= of->timeline().slices.size()) return nullptr;
  return &of->slice(ref.slice);
}

std::shared_ptr<const TimelineModel> build_timeline_model(
    std::shared_ptr<const RunData> measured, std::shared_ptr<const RunData> predicted) {
  auto model = std::make_shared<TimelineModel>();
  if (measured) model->measured = model_run(std::move(measured), model->notes);
  if (predicted) model->predicted = model_run(std::move(predicted), model->notes);
  for (const auto* run : {&model->measured, &model->predicted}) {
    if (*run) add_extent(**run, *model);
  }
  if (model->measured && model->predicted) add_differences(*model);
  return model;
}

}  // namespace ring::gui
