// Timeline rows: what a timeline looks like when drawn, one row per lane and no two bars
// overlapping.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/timeline.h"

namespace ring {

/// A bar: the working or the waiting part of a slice.
struct RowBar {
  size_t slice = 0;  ///< Index into Timeline::slices.
  bool is_wait = false;
  Picoseconds begin_ps = 0, end_ps = 0;
};

/// The bars of one lane in order of time. A lane whose slices overlap, as can be in files of
/// others, has further rows, counted by `overflow`.
struct TimelineRow {
  int rank = 0;
  int lane = 0;
  int overflow = 0;
  std::string label;  ///< "compute", "send", "receive 2", "lane 4 (overlapping)".
  std::vector<RowBar> bars;
};

/// Rows in order of rank, lane, overflow. Waits are cut where the row is still busy.
std::vector<TimelineRow> timeline_rows(const Timeline& timeline);

}  // namespace ring
