// Gantt picture: timelines as bars over time, measured solid and predicted hatched, as SVG.
#pragma once

#include <string>

#include "core/timeline.h"

namespace ring {

struct GanttOptions {
  std::string title;
  int width = 1200;     ///< Pixels.
  int most_ranks = 16;  ///< Further ranks are left out, and the picture says so.
};

/// One group of rows per rank and in it one row per lane; with both timelines the measured bar
/// stands above the predicted one. Either may be null, not both. Bars narrower than a pixel are
/// folded, so the picture stays small however many slices there are.
std::string gantt_svg(const Timeline* measured, const Timeline* predicted,
                      const GanttOptions& options = {});

}  // namespace ring
