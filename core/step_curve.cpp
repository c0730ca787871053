#include "core/step_curve.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace ring {
namespace {

constexpr size_t kGridPoints = 16384;
/// Parts of at least so many grid steps are read from the grid.
constexpr double kGridStepsPerPart = 4;

}  // namespace

StepCurve::StepCurve(std::vector<Step> steps) {
  steps_.reserve(steps.size());
  for (const Step& step : steps) {
    RING_ASSERT(steps_.empty() || step.at_ps >= steps_.back().at_ps);
    if (!steps_.empty() && step.at_ps == steps_.back().at_ps) {
      steps_.back() = step;
    } else {
      steps_.push_back(step);
    }
  }
  integral_.reserve(steps_.size());
  double sum = 0;
  for (size_t i = 0; i < steps_.size(); ++i) {
    if (i > 0) {
      const double length_ps = static_cast<double>(steps_[i].at_ps - steps_[i - 1].at_ps);
      sum += steps_[i - 1].value * length_ps;
    }
    integral_.push_back(sum);
    peak_ = std::max(peak_, steps_[i].value);
    lowest_ = std::min(lowest_, steps_[i].value);
  }
  build_grid();
}

void StepCurve::build_grid() {
  if (steps_.size() <= kGridPoints / 2) return;
  const auto begin_ps = static_cast<double>(steps_.front().at_ps);
  grid_step_ps_ = (static_cast<double>(steps_.back().at_ps) - begin_ps) / (kGridPoints - 1);
  grid_.reserve(kGridPoints);
  size_t hint = 0;
  for (size_t i = 0; i < kGridPoints; ++i) {
    grid_.push_back(integral(begin_ps + grid_step_ps_ * static_cast<double>(i), hint));
  }
}

/// The first step after `at_ps`, looked for from `from` on at growing distances.
size_t StepCurve::step_after(double at_ps, size_t from) const {
  const auto is_after = [&](size_t i) { return static_cast<double>(steps_[i].at_ps) > at_ps; };
  size_t low = from, stride = 1;
  if (low > 0 && is_after(low - 1)) low = 0;
  while (low + stride < steps_.size() && !is_after(low + stride)) {
    low += stride;
    stride *= 2;
  }
  size_t high = std::min(low + stride, steps_.size());
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    is_after(middle) ? high = middle : low = middle + 1;
  }
  return low;
}

double StepCurve::integral(double at_ps, size_t& hint) const {
  hint = step_after(at_ps, hint);
  if (hint == 0) return 0;
  const Step& step = steps_[hint - 1];
  return integral_[hint - 1] + step.value * (at_ps - static_cast<double>(step.at_ps));
}

double StepCurve::value_at(Picoseconds at_ps) const {
  const auto after = std::partition_point(steps_.begin(), steps_.end(),
                                          [&](const Step& step) { return step.at_ps <= at_ps; });
  return after == steps_.begin() ? 0 : std::prev(after)->value;
}

double StepCurve::mean(Picoseconds from_ps, Picoseconds to_ps) const {
  RING_ASSERT(from_ps < to_ps);
  size_t hint = 0;
  const auto from = static_cast<double>(from_ps), to = static_cast<double>(to_ps);
  const double before = integral(from, hint);
  return (integral(to, hint) - before) / (to - from);
}

void StepCurve::means(Picoseconds from_ps, Picoseconds to_ps, std::span<float> out) const {
  RING_ASSERT(from_ps < to_ps);
  std::fill(out.begin(), out.end(), 0.0F);
  if (steps_.empty() || out.empty()) return;
  const auto from = static_cast<double>(from_ps);
  const double part_ps = (static_cast<double>(to_ps) - from) / static_cast<double>(out.size());
  const bool use_grid = !grid_.empty() && part_ps >= kGridStepsPerPart * grid_step_ps_;
  const auto begin_ps = static_cast<double>(steps_.front().at_ps);
  const auto last = static_cast<double>(kGridPoints - 1);
  size_t hint = 0;
  const auto integral_at = [&](double at_ps) {
    const double place = (at_ps - begin_ps) / grid_step_ps_;
    if (!use_grid || place < 0 || place >= last) return integral(at_ps, hint);
    const auto cell = static_cast<size_t>(place);
    const double share = place - static_cast<double>(cell);
    return grid_[cell] + (grid_[cell + 1] - grid_[cell]) * share;
  };
  double before = integral_at(from);
  for (size_t i = 0; i < out.size(); ++i) {
    const double after = integral_at(from + part_ps * static_cast<double>(i + 1));
    out[i] = static_cast<float>((after - before) / part_ps);
    before = after;
  }
}

}  // namespace ring
