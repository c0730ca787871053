// TimelineLayout: which rows stand where, as heights from the top of the first rank; and where the
// parts of the view lie.
#pragma once

#include <QRect>
#include <QString>
#include <algorithm>
#include <optional>
#include <vector>

#include "gui/timeline/timeline_model.h"

namespace ring::gui {

/// Which runs are shown, and how two of them stand together.
enum class LayoutMode { kMeasured, kPredicted, kStacked, kOverlaid };

enum class RowKind { kBars, kDifference, kLink, kMemory };

/// Line heights in units of the widget, from the height of its font.
struct RowMetrics {
  explicit RowMetrics(int font_height = 15);
  int bar;        ///< A line of bars.
  int bar_gap;    ///< Between the lines of one row.
  int row_gap;    ///< After each row.
  int curve;      ///< A row of a curve.
  int group_gap;  ///< Above and below the rows of a rank.
};

struct LayoutRow {
  RowKind kind = RowKind::kBars;
  int rank = 0;
  int y = 0, height = 0;
  QString label;
  QString detail;  ///< Beside a curve: what its full height stands for.
  /// Bars: index into ModelRun::rows. Link: into ModelRun::links. Memory: the rank. -1: none.
  int measured = -1, predicted = -1;
};

struct LayoutGroup {
  int rank = 0;
  int y = 0, height = 0;
  int first_row = 0, row_count = 0;
};

class TimelineLayout {
 public:
  TimelineLayout() = default;
  TimelineLayout(const TimelineModel& model, LayoutMode mode, const RowMetrics& metrics,
                 uint64_t version = 0);

  const std::vector<LayoutRow>& rows() const { return rows_; }
  const std::vector<LayoutGroup>& groups() const { return groups_; }
  const RowMetrics& metrics() const { return metrics_; }
  LayoutMode mode() const { return mode_; }
  int height() const { return height_; }
  /// Given by who makes layouts, so that pictures of them can be told apart.
  uint64_t version() const { return version_; }

  /// Rows that touch [top, bottom), as [first, last).
  std::pair<int, int> rows_between(int top, int bottom) const;
  std::pair<int, int> groups_between(int top, int bottom) const;
  /// The row at the height, or none in a gap.
  std::optional<int> row_at(int y) const;
  /// Top of the line of bars of a run in a bars row.
  int line_y(const LayoutRow& row, TimelineOrigin origin) const;
  int line_height(const LayoutRow& row, TimelineOrigin origin) const;
  /// Height at the top of a line that no other line covers.
  int free_height(const LayoutRow& row, TimelineOrigin origin) const {
    return std::min(metrics_.bar, line_height(row, origin));
  }
  /// The row and run of a slice's bars; none when the run is not shown.
  std::optional<int> row_of(const TimelineModel& model, SliceRef slice) const;

 private:
  void add_bar_rows(const TimelineModel& model, int rank);
  void add_curve_rows(const TimelineModel& model, int rank);
  void push(LayoutRow row, int height);

  LayoutMode mode_ = LayoutMode::kStacked;
  RowMetrics metrics_;
  std::vector<LayoutRow> rows_;
  std::vector<LayoutGroup> groups_;
  std::vector<int> measured_rows_, predicted_rows_;  ///< ModelRun::rows to rows_; -1: not shown.
  int height_ = 0;
  uint64_t version_ = 0;
};

/// Whether the mode shows the run.
bool shows(LayoutMode mode, TimelineOrigin origin);

/// Between the lines of a legend.
inline constexpr int kLegendGap = 4;

/// Where the parts of the view lie, in units of the widget.
struct ViewGeometry {
  ViewGeometry() = default;
  /// `gutter` is the width of the row names.
  ViewGeometry(QSize size, int gutter, int font_height, int header_lines = 1);
  QRect header;         ///< Name, times, legend.
  int header_line = 0;  ///< Height of its first line.
  QRect minimap;        ///< The whole run; without the gutter.
  QRect ruler;
  QRect gutter;  ///< Row names.
  QRect plot;    ///< Bars and curves.
};

}  // namespace ring::gui
