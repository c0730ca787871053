// Bar folding: the bars of a row in pixels, with those too narrow to be seen drawn together.
#pragma once

#include <vector>

#include "core/formats/timeline_rows.h"

namespace ring {

struct FoldedBar {
  double x = 0, width = 0;
  OpKind kind = OpKind::kCompute;
  bool is_wait = false;
  bool is_folded = false;  ///< Stands for several bars; `slice` is the first.
  size_t slice = 0;
};

/// Bars narrower than a pixel share pixel columns; a column shows what fills most of it, and stays
/// empty when idleness does. Neighbouring columns of one kind are one bar. [0, end_ps] spans
/// `width` pixels from `left`.
std::vector<FoldedBar> fold_bars(const Timeline& timeline, const TimelineRow& row, double left,
                                 double width, Picoseconds end_ps);

}  // namespace ring
