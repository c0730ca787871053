#include "gui/timeline/view_range.h"

#include <algorithm>
#include <cmath>

namespace ring::gui {
namespace {

constexpr size_t kMostSteps = 200;
constexpr Picoseconds kMargin = 50;  ///< The fitted range is longer by this part of the run.

}  // namespace

Picoseconds ViewRange::fit_to() const {
  const Picoseconds length = end_ps_ - begin_ps_;
  return end_ps_ + std::max<Picoseconds>(length / kMargin, 1);
}

void ViewRange::set_extent(Picoseconds begin_ps, Picoseconds end_ps) {
  const bool was_fitted = is_fitted();
  begin_ps_ = begin_ps;
  end_ps_ = std::max(end_ps, begin_ps + static_cast<Picoseconds>(kLeastSpan));
  if (was_fitted) {
    from_ps_ = fit_from();
    to_ps_ = fit_to();
    return;
  }
  const auto steps = history_;
  const RangeMove last = last_move_;
  move_to(static_cast<double>(from_ps_), static_cast<double>(to_ps_), RangeMove::kJump);
  history_ = steps;
  last_move_ = last;
}

bool ViewRange::move_to(double from_ps, double to_ps, RangeMove move) {
  const auto least = static_cast<double>(fit_from()), most = static_cast<double>(fit_to());
  const double span = std::clamp(to_ps - from_ps, std::min(kLeastSpan, most - least), most - least);
  const double middle = (from_ps + to_ps) / 2;
  const double from = std::clamp(middle - span / 2, least, most - span);
  const auto new_from = std::max(fit_from(), static_cast<Picoseconds>(std::llround(from)));
  const auto new_to = std::min(fit_to(), static_cast<Picoseconds>(std::llround(from + span)));
  if (new_from == from_ps_ && new_to == to_ps_) return false;
  if (history_.empty() || move == RangeMove::kJump || move != last_move_) {
    if (history_.size() == kMostSteps) history_.erase(history_.begin());
    history_.emplace_back(from_ps_, to_ps_);
  }
  last_move_ = move;
  from_ps_ = new_from;
  to_ps_ = new_to;
  return true;
}

bool ViewRange::zoom(double factor, double at_ps) {
  const auto from = static_cast<double>(from_ps_), to = static_cast<double>(to_ps_);
  const double at = std::clamp(at_ps, from, to);
  const double least = std::min(kLeastSpan, to - from);
  const double span = std::max((to - from) / factor, least);
  const double new_from = at - (at - from) * span / (to - from);
  return move_to(new_from, new_from + span, RangeMove::kZoom);
}

bool ViewRange::pan(double by_ps) {
  return move_to(static_cast<double>(from_ps_) + by_ps, static_cast<double>(to_ps_) + by_ps,
                 RangeMove::kPan);
}

bool ViewRange::back() {
  if (history_.empty()) return false;
  const auto [from, to] = history_.back();
  history_.pop_back();
  last_move_ = RangeMove::kJump;
  from_ps_ = std::max(from, fit_from());
  to_ps_ = std::min(std::max(to, from_ps_ + 1), fit_to());
  if (from_ps_ >= to_ps_) {
    from_ps_ = fit_from();
    to_ps_ = fit_to();
  }
  return true;
}

}  // namespace ring::gui
