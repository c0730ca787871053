// TimelineView::Impl: the state of the view, and what keys and mouse do to it.
#pragma once

#include <QPoint>
#include <QPointer>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gui/timeline/search_bar.h"
#include "gui/timeline/timeline_painter.h"
#include "gui/timeline/timeline_view.h"
#include "gui/timeline/view_range.h"

class QKeyEvent;
class QMouseEvent;
class QScrollBar;
class QWheelEvent;

namespace ring::gui {

class TimelineView::Impl {
 public:
  explicit Impl(TimelineView& view);

  // timeline_impl.cpp
  void lay_out();
  TimelineScene scene() const;
  QSize picture_size() const;
  ViewGeometry geometry() const;
  TimeScale scale() const;
  void place_children();
  void range_changed();
  void refresh();
  void scroll_to(int y);
  int most_scroll() const;

  // timeline_actions.cpp
  void trigger(TimelineAction action);
  double anchor_ps() const;  ///< Where keys zoom: at the pointer, else at the cursor or the middle.
  void clear();
  void center_then_fit();
  void zoom_to_selection();
  void toggle_mark();

  // timeline_select.cpp
  void select(std::optional<SliceRef> slice, bool reveals);
  void reveal(SliceRef slice);
  void set_hovered(std::optional<SliceRef> slice);
  void set_area(std::optional<SelectedArea> area, bool is_final);
  void measure_area(bool is_final);
  std::optional<SliceRef> slice_at(QPointF at) const;
  std::optional<std::pair<int, TimelineOrigin>> line_at(int y) const;
  void step(int by, bool extends);
  void change_row(int by);
  void follow(bool forward);
  std::optional<SliceRef> first_visible() const;
  std::optional<std::pair<Picoseconds, Picoseconds>> selected_times() const;

  // timeline_search.cpp
  int64_t search(const QString& text);
  void next_hit(int by);

  // timeline_pointer.cpp
  void press(const QMouseEvent& event);
  void move(const QMouseEvent& event);
  void release(const QMouseEvent& event);
  void wheel(const QWheelEvent& event);
  void drag_area(QPointF to, bool is_final);
  void jump_to(double minimap_x);

  TimelineView& view;
  std::shared_ptr<const TimelineModel> model;
  LayoutMode mode = LayoutMode::kStacked;
  Theme theme = Theme::kLight;
  TimelineLayout layout;
  uint64_t layouts = 0;  ///< How many were made.
  int gutter = 100;
  int header_lines = 1;
  ViewRange range;
  int scroll_y = 0;
  std::optional<Picoseconds> cursor_ps;
  std::optional<SliceRef> selected, hovered;
  std::optional<SliceRef> extend_from;  ///< First slice of a range made by keys.
  std::optional<SelectedArea> area;
  TimelineSelection selection;
  std::vector<TimelineMark> marks;
  int next_mark = 0;
  QString search_text;
  std::unique_ptr<SearchHits> hits;
  std::vector<SliceRef> hit_order;  ///< By start.
  std::optional<QPointF> pointer;

  enum class Drag { kNone, kPress, kArea, kCursor, kMinimap, kPan };
  Drag drag = Drag::kNone;
  QPointF drag_from;
  bool drag_all_rows = false;

  QScrollBar* scroll_bar = nullptr;
  SearchBar* search_bar = nullptr;
  PaintCache cache;
};

}  // namespace ring::gui
