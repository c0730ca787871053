#include "core/timeline_pairs.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace ring {
namespace {

std::vector<uint32_t> by_op(const Timeline& timeline) {
  std::vector<uint32_t> order(timeline.slices.size());
  std::iota(order.begin(), order.end(), uint32_t{0});
  const auto op = [&](uint32_t i) { return timeline.slices[i].op; };
  const auto is_before = [&](uint32_t a, uint32_t b) { return op(a) < op(b); };
  if (!std::is_sorted(order.begin(), order.end(), is_before)) {
    std::stable_sort(order.begin(), order.end(), is_before);
  }
  return order;
}

bool is_computing(OpKind kind) { return kind != OpKind::kSend && kind != OpKind::kReceive; }

}  // namespace

TimelinePairs::TimelinePairs(const Timeline& measured, const Timeline& predicted) {
  of_measured_.assign(measured.slices.size(), -1);
  of_predicted_.assign(predicted.slices.size(), -1);
  if (measured.ranks != predicted.ranks) {
    mismatch_ =
        fmt::format("{} ranks were measured and {} predicted", measured.ranks, predicted.ranks);
    return;
  }
  const std::vector<uint32_t> left = by_op(measured), right = by_op(predicted);
  for (size_t i = 0, j = 0; i < left.size() && j < right.size();) {
    const Slice& a = measured.slices[left[i]];
    const Slice& b = predicted.slices[right[j]];
    if (a.op == b.op && a.kind != b.kind) {
      mismatch_ = fmt::format("op r{}:{} is {} in the measured run and {} in the predicted one",
                              a.op.rank, a.op.index, name(a.kind), name(b.kind));
      of_measured_.assign(measured.slices.size(), -1);
      of_predicted_.assign(predicted.slices.size(), -1);
      count_ = 0;
      return;
    }
    if (a.op == b.op) {
      of_measured_[left[i]] = right[j];
      of_predicted_[right[j]] = left[i];
      ++count_;
    }
    const bool is_left = a.op <= b.op, is_right = b.op <= a.op;
    if (is_left) ++i;
    if (is_right) ++j;
  }
}

std::optional<SliceRef> TimelinePairs::partner(SliceRef slice) const {
  const bool is_measured = slice.origin == TimelineOrigin::kMeasured;
  const std::vector<int64_t>& others = is_measured ? of_measured_ : of_predicted_;
  if (slice.slice >= others.size() || others[slice.slice] < 0) return std::nullopt;
  return SliceRef{is_measured ? TimelineOrigin::kPredicted : TimelineOrigin::kMeasured,
                  static_cast<uint32_t>(others[slice.slice])};
}

std::vector<StepCurve> drift_curves(const Timeline& measured, const Timeline& predicted,
                                    const TimelinePairs& pairs) {
  std::vector<std::vector<StepCurve::Step>> steps(static_cast<size_t>(std::max(0, measured.ranks)));
  for (uint32_t i = 0; i < measured.slices.size(); ++i) {
    const Slice& slice = measured.slices[i];
    const auto other = pairs.partner({TimelineOrigin::kMeasured, i});
    if (!other || !is_computing(slice.kind)) continue;
    const Picoseconds drift_ps = predicted.slices[other->slice].end_ps - slice.end_ps;
    steps[static_cast<size_t>(slice.op.rank)].push_back(
        {slice.end_ps, static_cast<double>(drift_ps)});
  }
  std::vector<StepCurve> curves;
  for (auto& rank : steps) {
    std::stable_sort(rank.begin(), rank.end(),
                     [](const auto& a, const auto& b) { return a.at_ps < b.at_ps; });
    curves.emplace_back(std::move(rank));
  }
  return curves;
}

}  // namespace ring
