// TimelineScene: everything that a picture of the timeline shows, as values.
#pragma once

#include <QPointF>
#include <QString>
#include <memory>
#include <optional>
#include <vector>

#include "core/slice_ref.h"
#include "gui/timeline/timeline_layout.h"
#include "gui/timeline/timeline_model.h"

namespace ring::gui {

/// A time that the user marked.
struct TimelineMark {
  Picoseconds at_ps = 0;
  QString label;
  bool operator==(const TimelineMark&) const = default;
};

/// A dragged range of time over some rows of the layout.
struct SelectedArea {
  Picoseconds from_ps = 0, to_ps = 0;
  int first_row = 0, last_row = 0;  ///< [first, last).
};

/// The slices that a search found, by row of each run.
struct SearchHits {
  std::vector<RowLevels> measured, predicted;  ///< By index into ModelRun::rows.
  int64_t count = 0;
  const RowLevels& of(TimelineOrigin origin, int row) const {
    return (origin == TimelineOrigin::kMeasured ? measured : predicted)[static_cast<size_t>(row)];
  }
};

/// What one picture shows; the pointed-to things must outlive it.
struct TimelineScene {
  const TimelineModel* model = nullptr;  ///< Null: nothing to show.
  const TimelineLayout* layout = nullptr;
  Picoseconds from_ps = 0, to_ps = 1;
  int scroll_y = 0;
  int gutter = 100;      ///< Width of the row names.
  int header_lines = 1;  ///< As from header_lines().
  std::optional<SliceRef> hovered, selected;
  std::optional<SelectedArea> area;
  std::optional<Picoseconds> cursor_ps;
  std::vector<TimelineMark> marks;
  const SearchHits* hits = nullptr;  ///< Null: no search.
  std::optional<QPointF> pointer;
  bool has_focus = false;
};

/// Time to place and back, in units of the widget.
class TimeScale {
 public:
  TimeScale(Picoseconds from_ps, Picoseconds to_ps, double left, double width)
      : from_(static_cast<double>(from_ps)),
        left_(left),
        per_ps_(width / (static_cast<double>(to_ps) - static_cast<double>(from_ps))) {}
  double x_of(Picoseconds at_ps) const {
    return left_ + (static_cast<double>(at_ps) - from_) * per_ps_;
  }
  double time_at(double x) const { return from_ + (x - left_) / per_ps_; }
  double ps_per_unit() const { return 1 / per_ps_; }

 private:
  double from_, left_, per_ps_;
};

}  // namespace ring::gui
