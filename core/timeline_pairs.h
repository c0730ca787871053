// TimelinePairs: the slices of a measured and a predicted timeline that are of the same op.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/slice_ref.h"
#include "core/step_curve.h"
#include "core/timeline.h"

namespace ring {

class TimelinePairs {
 public:
  TimelinePairs() = default;
  /// Timelines of different programs have no pairs; `mismatch` says why they are different.
  TimelinePairs(const Timeline& measured, const Timeline& predicted);

  /// The slice of the same op in the other timeline.
  std::optional<SliceRef> partner(SliceRef slice) const;
  const std::string& mismatch() const { return mismatch_; }
  int64_t count() const { return count_; }
  int64_t only_measured() const { return std::ssize(of_measured_) - count_; }
  int64_t only_predicted() const { return std::ssize(of_predicted_) - count_; }

 private:
  std::vector<int64_t> of_measured_, of_predicted_;  ///< The other slice, or -1.
  int64_t count_ = 0;
  std::string mismatch_;
};

/// Per rank, how far the prediction was behind (positive) or ahead of the run: predicted minus
/// measured end of the last computing op that had ended by then, over measured time. Ranks without
/// pairs have empty curves.
std::vector<StepCurve> drift_curves(const Timeline& measured, const Timeline& predicted,
                                    const TimelinePairs& pairs);

}  // namespace ring
