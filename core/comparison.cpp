#include "core/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/error.h"

namespace ring {
namespace {

std::vector<const Slice*> by_id(const Timeline& timeline) {
  std::vector<const Slice*> slices;
  slices.reserve(timeline.slices.size());
  for (const Slice& slice : timeline.slices) slices.push_back(&slice);
  std::sort(slices.begin(), slices.end(),
            [](const Slice* a, const Slice* b) { return a->op < b->op; });
  return slices;
}

double relative(Picoseconds predicted, Picoseconds measured) {
  if (predicted == measured) return 0;
  return static_cast<double>(predicted) / static_cast<double>(std::max(measured, Picoseconds{1})) -
         1;
}

OpDifference difference(const Slice& measured, const Slice& predicted) {
  if (measured.kind != predicted.kind) {
    throw_usage(
        fmt::format("the timelines are of different programs: op r{}:{} is {} in one and "
                    "{} in the other",
                    measured.op.rank, measured.op.index, name(measured.kind), name(predicted.kind)),
        "compare a run with the prediction of the same problem and tuning");
  }
  const Picoseconds measured_ps = measured.end_ps - measured.start_ps;
  const Picoseconds predicted_ps = predicted.end_ps - predicted.start_ps;
  return {measured.op, measured.kind, predicted_ps - measured_ps,
          predicted.end_ps - measured.end_ps, relative(predicted_ps, measured_ps)};
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

}  // namespace

Comparison compare(const Timeline& measured, const Timeline& predicted) {
  if (measured.ranks != predicted.ranks) {
    throw_usage(fmt::format("the timelines are of different programs: {} and {} ranks",
                            measured.ranks, predicted.ranks),
                "compare a run with the prediction of the same problem and tuning");
  }
  Comparison result;
  result.measured = measure(measured);
  result.predicted = measure(predicted);
  result.makespan_error = relative(result.predicted.makespan_ps, result.measured.makespan_ps);

  std::map<OpKind, std::pair<KindSummary, std::vector<double>>> kinds;
  const auto left = by_id(measured), right = by_id(predicted);
  size_t i = 0, j = 0;
  while (i < left.size() && j < right.size()) {
    if (left[i]->op != right[j]->op) {
      const bool is_left = left[i]->op < right[j]->op;
      is_left ? ++i : ++j;
      ++(is_left ? result.only_measured : result.only_predicted);
      continue;
    }
    const OpDifference entry = difference(*left[i], *right[j]);
    auto& [summary, errors] = kinds[entry.kind];
    summary.kind = entry.kind;
    ++summary.count;
    summary.measured_ps += left[i]->end_ps - left[i]->start_ps;
    summary.predicted_ps += right[j]->end_ps - right[j]->start_ps;
    errors.push_back(entry.relative);
    result.ops.push_back(entry);
    ++i;
    ++j;
  }
  result.only_measured += static_cast<int64_t>(left.size() - i);
  result.only_predicted += static_cast<int64_t>(right.size() - j);
  for (auto& [kind, entry] : kinds) {
    entry.first.median_relative = median(std::move(entry.second));
    result.kinds.push_back(entry.first);
  }
  return result;
}

}  // namespace ring
