// SpeedCheck: how fast the cores are at this moment, by a fixed piece of attention on all of them.
#pragma once

#include <memory>

#include "core/calibration.h"

namespace ring {

/// Other work on the machine, or on the physical machine below a virtual one, can slow a core for
/// seconds without showing as load. A check takes a few milliseconds; its ratio to the check made
/// while the machine was calibrated says whether a measurement is worth making now.
class SpeedCheck {
 public:
  /// Starts threads on `cores` cores; 0 means all that the process may use.
  explicit SpeedCheck(int cores = 0);
  ~SpeedCheck();

  /// Seconds that the fixed work takes, until the slowest core is done; the median of three.
  double measure();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Name of the samples of a calibration that hold its speed checks.
inline constexpr const char* kSpeedProbe = "speed-check";

/// What the check took while the machine was calibrated, the median; 0 when it was not made.
double calibrated_speed_check_s(const Calibration& calibration);

}  // namespace ring
