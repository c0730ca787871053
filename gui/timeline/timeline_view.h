// TimelineView: the picture of a measured and a predicted run in time, moved by keys and mouse.
#pragma once

#include <QMetaType>
#include <QWidget>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/slice_ref.h"
#include "core/slice_statistics.h"
#include "gui/paint/theme.h"
#include "gui/timeline/timeline_model.h"
#include "gui/timeline/timeline_scene.h"

class QPainter;

namespace ring::gui {

/// What the user selected by dragging, and the slices that it touches.
struct TimelineSelection {
  bool is_empty = true;
  Picoseconds from_ps = 0, to_ps = 0;
  std::vector<int> ranks;  ///< Ranks of which a row is selected.
  std::optional<SliceStatistics> measured, predicted;
};

/// How `TimelineView::render_to` draws; what is shown is what the view shows.
struct RenderOptions {
  bool is_vector = false;      ///< Shapes instead of pixels, for SVG and PDF.
  double pixel_ratio = 1;      ///< Device pixels per unit of the size, for pictures.
  bool all_rows = false;       ///< All rows, however high, instead of those scrolled to.
  bool with_pointer = false;   ///< Hover line and focus frame too.
  std::optional<Theme> theme;  ///< Another theme than that of the view.
};

/// Everything that the view can be told to do, each with its keys; see timeline_actions().
enum class TimelineAction {
  kZoomIn,
  kZoomOut,
  kPanLeft,
  kPanRight,
  kScrollUp,
  kScrollDown,
  kFit,
  kClear,
  kCenterThenFit,
  kPreviousSlice,
  kNextSlice,
  kRowAbove,
  kRowBelow,
  kFlowBack,
  kFlowForward,
  kExtendLeft,
  kExtendRight,
  kZoomToSelection,
  kBack,
  kMark,
  kSearch,
  kNextHit,
  kPreviousHit,
  kShowMeasured,
  kShowPredicted,
  kShowOverlaid,
  kShowStacked,
  kActivate,
};

struct TimelineActionInfo {
  TimelineAction action;
  const char* name;     ///< "Zoom in".
  const char* keys;     ///< As QKeySequence reads them, alternatives separated by "; ".
  const char* gesture;  ///< What the mouse does for it; may be empty.
};
/// In the order in which a help sheet lists them.
std::span<const TimelineActionInfo> timeline_actions();

class TimelineView : public QWidget {
  Q_OBJECT

 public:
  explicit TimelineView(QWidget* parent = nullptr);
  ~TimelineView() override;

  /// Shows other runs; null shows none. What was fitted stays fitted, otherwise the time range, the
  /// selected op and the marks stay where they can.
  void set_runs(std::shared_ptr<const TimelineModel> model);
  const TimelineModel* model() const;

  void set_time_range(Picoseconds from_ps, Picoseconds to_ps);
  std::pair<Picoseconds, Picoseconds> time_range() const;
  void zoom_to_fit();
  /// For another run: all of it from the first rank, without cursor, marks, search or selection.
  void start_over();

  void set_cursor_ps(Picoseconds at_ps);
  Picoseconds cursor_ps() const;

  void set_layout_mode(LayoutMode mode);
  LayoutMode layout_mode() const;
  void set_theme(Theme theme);
  Theme theme() const;

  void select_slice(std::optional<SliceRef> slice);
  std::optional<SliceRef> selected_slice() const;
  std::optional<SliceRef> hovered_slice() const;
  /// Over the given time and all rows; an empty range clears.
  void select_range(Picoseconds from_ps, Picoseconds to_ps);
  const TimelineSelection& selection() const;

  /// Highlights the slices that the text describes (core/slice_search.h), and returns their number.
  /// Empty text ends the search.
  int64_t search(const QString& text);
  QString search_text() const;

  const std::vector<TimelineMark>& marks() const;
  void set_marks(std::vector<TimelineMark> marks);

  int scroll_y() const;
  void set_scroll_y(int y);

  void trigger(TimelineAction action);

  /// Draws what the view shows into a picture of the given size.
  void render_to(QPainter& painter, QSize size, const RenderOptions& options) const;
  /// Height at which `RenderOptions::all_rows` leaves nothing out.
  int full_height() const;
  /// The slice in words, a line each: kind, place, times, rates, the other run.
  QString describe(SliceRef slice) const;
  /// The slices on screen as CSV.
  std::string visible_csv() const;

  QSize sizeHint() const override;
  QSize minimumSizeHint() const override;

 Q_SIGNALS:
  void selection_changed(const ring::gui::TimelineSelection& selection);
  void slice_selected(std::optional<ring::SliceRef> slice);
  void hovered(std::optional<ring::SliceRef> slice);
  /// Return or double click on a slice: the user asks about it.
  void activated(ring::SliceRef slice);
  void cursor_moved(qint64 at_ps);
  void time_range_changed(qint64 from_ps, qint64 to_ps);
  void layout_mode_changed(ring::gui::LayoutMode mode);
  void marks_changed();
  void search_changed(const QString& text, qint64 hits);

 protected:
  bool event(QEvent* event) override;
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void wheelEvent(QWheelEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;
  void leaveEvent(QEvent* event) override;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ring::gui

Q_DECLARE_METATYPE(ring::gui::TimelineSelection)
Q_DECLARE_METATYPE(std::optional<ring::SliceRef>)
