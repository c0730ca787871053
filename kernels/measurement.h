// Measurement: a program run several times on this machine.
#pragma once

#include <atomic>
#include <functional>
#include <vector>

#include "core/timeline.h"
#include "core/units.h"
#include "kernels/executor.h"

namespace ring {

struct Measurement {
  std::vector<Picoseconds> steps_ps;  ///< Times of the whole runs, in their order.
  Timeline timeline;     ///< Of the run whose time is the median; a partial one if none was whole.
  int64_t began_ns = 0;  ///< When that run was called, on the clock of now_ns().
  bool is_complete = true;

  /// 0 when no run was whole.
  Picoseconds median_ps() const;
  /// Half the distance from the 10th to the 90th percentile, relative to the median.
  double spread() const;
};

/// Makes the timeline of the run with the middle time that of the measurement; `timelines` are
/// those of steps_ps. Returns the number of that run, 0 when there was none.
size_t select_timeline(const std::vector<Timeline>& timelines, Measurement& measurement);

/// Runs `warmups` times unrecorded, then `repeats` times. `on_run(i)` is called before each of
/// warmups + repeats runs. Ends early, with is_complete false, once `is_interrupted`.
Measurement measure_runs(Executor& executor, int warmups, int repeats,
                         const std::atomic<bool>& is_interrupted,
                         const std::function<void(int)>& on_run);

}  // namespace ring
