#include "core/formats/import/trace_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <unordered_map>

#include "core/error.h"
#include "core/metrics.h"
#include "core/program_text.h"

namespace ring {
namespace {

constexpr size_t kMostKernels = 1'000'000;
constexpr std::string_view kSourceKey = "imported from";

/// In which order the traces become ranks.
std::vector<size_t> rank_order(const std::vector<KernelTrace>& traces) {
  std::vector<size_t> order(traces.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::set<int> stated;
  for (const KernelTrace& trace : traces) stated.insert(trace.rank);
  if (stated.size() == traces.size() && *stated.begin() >= 0) {
    std::sort(order.begin(), order.end(),
              [&](size_t a, size_t b) { return traces[a].rank < traces[b].rank; });
  }
  return order;
}

/// Gives the slices of one rank lanes on which none overlaps another; returns how many.
int separate_lanes(std::vector<Slice>& slices) {
  std::sort(slices.begin(), slices.end(), [](const Slice& a, const Slice& b) {
    return std::tuple(a.start_ps, a.end_ps, a.op.index) <
           std::tuple(b.start_ps, b.end_ps, b.op.index);
  });
  struct Row {
    int32_t lane;
    Picoseconds free_ps;
  };
  std::map<int32_t, std::vector<Row>> rows;
  int32_t lanes = 0;
  for (const Slice& slice : slices) rows[slice.lane];
  for (auto& [stream, list] : rows)
    list.push_back({lanes++, std::numeric_limits<Picoseconds>::min()});
  for (Slice& slice : slices) {
    auto& list = rows.at(slice.lane);
    auto row = std::find_if(list.begin(), list.end(),
                            [&](const Row& r) { return r.free_ps <= slice.start_ps; });
    if (row == list.end()) {
      list.push_back({lanes++, 0});
      row = list.end() - 1;
    }
    row->free_ps = slice.end_ps;
    slice.lane = row->lane;
  }
  return lanes;
}

/// One rank of the program: its slices in order of time become its ops.
class RankWriter {
 public:
  explicit RankWriter(int lanes) : writer_(lanes) {}

  RankProgram write(const std::vector<Slice>& slices) {
    // Ops that are over, by end: the last of them before a start is what it may have waited for.
    std::multimap<Picoseconds, LanePoint> ended;
    for (const Slice& slice : slices) {
      std::vector<LanePoint> deps;
      const auto after = ended.upper_bound(slice.start_ps);
      if (after != ended.begin()) {
        const LanePoint& point = std::prev(after)->second;
        if (point.lane != slice.lane) deps.push_back(point);
      }
      ended.emplace(slice.end_ps, writer_.append(op_of(slice), deps, batch_));
    }
    return {std::move(batch_.ops), std::move(batch_.deps), {}};
  }

 private:
  static Op op_of(const Slice& slice) {
    Op op;
    op.kind = slice.kind;
    op.lane = slice.lane;
    op.bytes = slice.bytes;
    if (slice.kind == OpKind::kCompute) op.fixed_ps = slice.end_ps - slice.start_ps;
    if (slice.kind == OpKind::kAttend) op.q_shard = slice.op.rank;
    if (slice.kind == OpKind::kReceive) {
      op.peer = slice.op.rank;
      op.message = slice.op.index;
    }
    return op;
  }

  OpWriter writer_;
  OpBatch batch_;
};

class NameTable {
 public:
  int32_t number(const std::string& name) {
    const auto [at, is_new] = numbers_.emplace(name, static_cast<int32_t>(names_.size()));
    if (is_new) names_.push_back(name);
    return at->second;
  }
  std::vector<std::string> take() { return std::move(names_); }

 private:
  std::vector<std::string> names_;
  std::unordered_map<std::string, int32_t> numbers_;
};

std::vector<Slice> slices_of(const KernelTrace& trace, const std::string& path) {
  if (trace.slices.empty() && trace.is_of_ring_program) {
    throw_usage(
        path + ": a trace that RingScope wrote of a ring program, whose waits it leaves out",
        "take the run file that it was made from");
  }
  if (trace.slices.empty()) {
    throw_usage(path + ": no kernel ran in it",
                "trace with GPU activities (CUPTI), not the host alone");
  }
  if (trace.slices.size() > kMostKernels) {
    throw_usage(fmt::format("{}: {} kernels are more than a run file holds ({})", path,
                            trace.slices.size(), kMostKernels),
                "trace fewer steps");
  }
  return timeline_of(trace).slices;
}

}  // namespace

RunFile run_of_traces(const std::vector<KernelTrace>& traces,
                      const std::vector<std::string>& paths) {
  RING_ASSERT(traces.size() == paths.size() && !traces.empty());
  const std::vector<size_t> order = rank_order(traces);
  RunFile run;
  run.name = fmt::format("trace {}", fmt::join(paths, ", "));
  Timeline timeline;
  timeline.origin = TimelineOrigin::kMeasured;
  timeline.ranks = static_cast<int>(traces.size());
  OpNames names;
  NameTable table;
  std::vector<std::vector<Slice>> ranks;
  for (size_t r = 0; r < order.size(); ++r) {
    const KernelTrace& trace = traces[order[r]];
    std::vector<Slice> slices = slices_of(trace, paths[order[r]]);
    timeline.lanes = std::max(timeline.lanes, separate_lanes(slices));
    auto& of_rank = names.of_rank.emplace_back();
    for (size_t i = 0; i < slices.size(); ++i) {
      const auto kernel = static_cast<size_t>(slices[i].op.index);
      const auto name = static_cast<size_t>(trace.slices[kernel].name);
      of_rank.push_back(table.number(trace.names[name]));
      slices[i].op = {static_cast<int32_t>(r), static_cast<int64_t>(i)};
    }
    timeline.slices.insert(timeline.slices.end(), slices.begin(), slices.end());
    ranks.push_back(std::move(slices));
  }
  names.names = table.take();
  RingProgram program;
  program.name = run.name;
  program.lanes = timeline.lanes;
  for (const auto& slices : ranks) {
    program.rank_programs.push_back(RankWriter(timeline.lanes).write(slices));
  }
  sort_slices(timeline);
  run.program_text = program_text(program);
  run.measured_metrics = measure(timeline);
  run.measured = std::move(timeline);
  run.op_names = std::move(names);
  run.context[std::string(kSourceKey)] = fmt::format("{}", fmt::join(paths, ", "));
  for (const KernelTrace& trace : traces) {
    if (!trace.device_name.empty()) run.context["gpu"] = trace.device_name;
  }
  return run;
}

bool is_imported(const RunFile& run) { return run.context.contains(std::string(kSourceKey)); }

}  // namespace ring
