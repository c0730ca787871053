// StepCurve: a quantity that changes at points in time and keeps its value between them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/units.h"

namespace ring {

class StepCurve {
 public:
  StepCurve() = default;
  struct Step {
    Picoseconds at_ps = 0;
    double value = 0;  ///< From `at_ps` until the next step.
  };
  /// Steps in order of time; of several at one time the last counts. Zero before the first; the
  /// last value stays for ever.
  explicit StepCurve(std::vector<Step> steps);

  std::span<const Step> steps() const { return steps_; }
  bool is_empty() const { return steps_.empty(); }
  double peak() const { return peak_; }      ///< Highest value, at least 0.
  double lowest() const { return lowest_; }  ///< Lowest value, at most 0.
  double value_at(Picoseconds at_ps) const;
  /// Mean over [from_ps, to_ps).
  double mean(Picoseconds from_ps, Picoseconds to_ps) const;
  /// The mean over each of `out.size()` equal parts of [from_ps, to_ps). Takes time for the parts,
  /// not for the steps; means over parts much longer than a step may shift by a quarter of a part.
  void means(Picoseconds from_ps, Picoseconds to_ps, std::span<float> out) const;

 private:
  size_t step_after(double at_ps, size_t from) const;
  double integral(double at_ps, size_t& hint) const;
  void build_grid();

  std::vector<Step> steps_;
  std::vector<double> integral_;  ///< Up to each step, value times picoseconds.
  std::vector<double> grid_;      ///< The integral at equal distances; empty for few steps.
  double grid_step_ps_ = 0;
  double peak_ = 0, lowest_ = 0;
};

}  // namespace ring
