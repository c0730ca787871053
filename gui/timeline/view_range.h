// ViewRange: the part of a run that is looked at, with the way back to earlier ones.
#pragma once

#include <utility>
#include <vector>

#include "core/units.h"

namespace ring::gui {

/// How a range came about. Moves of one kind that follow each other are one step back.
enum class RangeMove { kJump, kZoom, kPan };

class ViewRange {
 public:
  /// What there is to be seen. A fitted range stays fitted; another one is kept as far as it fits.
  void set_extent(Picoseconds begin_ps, Picoseconds end_ps);

  Picoseconds from_ps() const { return from_ps_; }
  Picoseconds to_ps() const { return to_ps_; }
  double span_ps() const { return static_cast<double>(to_ps_) - static_cast<double>(from_ps_); }
  bool is_fitted() const { return from_ps_ == fit_from() && to_ps_ == fit_to(); }

  /// Each returns whether the range changed. Ranges are kept within the fitted one, and at least
  /// `kLeastSpan` wide.
  bool fit() {
    return move_to(static_cast<double>(fit_from()), static_cast<double>(fit_to()),
                   RangeMove::kJump);
  }
  bool move_to(double from_ps, double to_ps, RangeMove move);
  /// `factor` > 1 shows less; what is at `at_ps` stays where it is.
  bool zoom(double factor, double at_ps);
  bool pan(double by_ps);
  bool back();

 private:
  Picoseconds fit_from() const { return begin_ps_; }
  /// A little more than the run, so that its end is seen.
  Picoseconds fit_to() const;

  Picoseconds begin_ps_ = 0, end_ps_ = 1'000'000;
  Picoseconds from_ps_ = 0, to_ps_ = 1'020'000;
  std::vector<std::pair<Picoseconds, Picoseconds>> history_;
  RangeMove last_move_ = RangeMove::kJump;
};

/// Picoseconds.
inline constexpr double kLeastSpan = 100;

}  // namespace ring::gui
