// SliceStatistics: count, sum, mean, percentiles and extremes of the durations of some slices.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/timeline.h"

namespace ring {

/// Of a set of durations; all zero for the empty set.
struct DurationStatistics {
  int64_t count = 0;
  Picoseconds sum_ps = 0;  ///< Stays at the highest 64-bit number when it would leave it.
  double mean_ps = 0;
  /// Nearest rank: the smallest duration that at least this share of all do not exceed.
  Picoseconds p50_ps = 0, p95_ps = 0, p99_ps = 0;
  Picoseconds min_ps = 0, max_ps = 0;
};

/// Reorders `durations`.
DurationStatistics duration_statistics(std::span<Picoseconds> durations);

struct KindStatistics {
  OpKind kind = OpKind::kAttend;
  DurationStatistics work;  ///< [start, end) of the slices.
  DurationStatistics wait;  ///< [posted, start) of those slices that waited.
  Bytes bytes = 0;
  Flops flops = 0;
};

/// Of the slices, each counted whole.
struct SliceStatistics {
  DurationStatistics work;            ///< [start, end) of all slices.
  DurationStatistics wait;            ///< [posted, start) of those that waited.
  std::vector<KindStatistics> kinds;  ///< Those that occur, in the order of OpKind.
};

/// `slices` are indices into the slices of the timeline.
SliceStatistics slice_statistics(const Timeline& timeline, std::span<const uint32_t> slices);

}  // namespace ring
