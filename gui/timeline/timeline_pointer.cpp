// What the mouse does to the view: clicks, drags and the wheel.
#include <QMouseEvent>
#include <QWheelEvent>
#include <algorithm>
#include <cmath>

#include "gui/timeline/timeline_impl.h"

namespace ring::gui {
namespace {

constexpr double kDragFrom = 4;     ///< Shorter movements are clicks.
constexpr double kWheelZoom = 1.2;  ///< Per notch.
constexpr double kWheelPan = 0.1;   ///< Of what is shown, per notch.
constexpr double kNotch = 120;      ///< Angle of one notch of a wheel, in its own units.

}  // namespace

void TimelineView::Impl::press(const QMouseEvent& event) {
  if (!model || layout.rows().empty()) return;
  const QPointF at = event.position();
  const ViewGeometry parts = geometry();
  drag_from = at;
  pointer = at;
  drag = Drag::kNone;
  if (event.button() == Qt::MiddleButton) {
    drag = Drag::kPan;
    view.setCursor(Qt::ClosedHandCursor);
    return;
  }
  if (event.button() != Qt::LeftButton) return;
  if (parts.minimap.contains(at.toPoint())) {
    drag = Drag::kMinimap;
    jump_to(at.x());
  } else if (parts.ruler.contains(at.toPoint())) {
    drag = Drag::kCursor;
    view.set_cursor_ps(static_cast<Picoseconds>(std::llround(scale().time_at(at.x()))));
  } else if (parts.plot.contains(at.toPoint())) {
    drag = Drag::kPress;
    drag_all_rows = (event.modifiers() & Qt::ShiftModifier) != 0;
  }
}

void TimelineView::Impl::move(const QMouseEvent& event) {
  const QPointF at = event.position();
  const QPointF before = pointer.value_or(at);
  pointer = at;
  switch (drag) {
    case Drag::kNone:
      set_hovered(slice_at(at));
      break;
    case Drag::kPress:
      if ((at - drag_from).manhattanLength() < kDragFrom) break;
      drag = Drag::kArea;
      [[fallthrough]];
    case Drag::kArea:
      drag_area(at, false);
      break;
    case Drag::kCursor: {
      const QRect ruler = geometry().ruler;
      const double x = std::clamp<double>(at.x(), ruler.left(), ruler.right());
      view.set_cursor_ps(static_cast<Picoseconds>(std::llround(scale().time_at(x))));
      break;
    }
    case Drag::kMinimap:
      jump_to(at.x());
      break;
    case Drag::kPan:
      if (range.pan((before.x() - at.x()) * scale().ps_per_unit())) range_changed();
      scroll_to(scroll_y + static_cast<int>(std::lround(before.y() - at.y())));
      break;
  }
  refresh();
}

void TimelineView::Impl::release(const QMouseEvent& event) {
  const Drag done = std::exchange(drag, Drag::kNone);
  if (done == Drag::kPan) view.unsetCursor();
  if (done == Drag::kArea) drag_area(event.position(), true);
  if (done != Drag::kPress) return;
  const QPointF at = event.position();
  view.set_cursor_ps(static_cast<Picoseconds>(std::llround(scale().time_at(at.x()))));
  set_area(std::nullopt, true);
  select(slice_at(at), false);
}

void TimelineView::Impl::drag_area(QPointF to, bool is_final) {
  const QRect plot = geometry().plot;
  const TimeScale times = scale();
  const auto time_at = [&](double x) {
    const double inside = std::clamp<double>(x, plot.left(), plot.right() + 1);
    return static_cast<Picoseconds>(std::llround(times.time_at(inside)));
  };
  const auto height_at = [&](double y) {
    const double inside = std::clamp<double>(y, plot.top(), plot.bottom());
    return static_cast<int>(std::floor(inside)) - plot.top() + scroll_y;
  };
  SelectedArea dragged;
  dragged.from_ps = time_at(std::min(drag_from.x(), to.x()));
  dragged.to_ps = std::max(time_at(std::max(drag_from.x(), to.x())), dragged.from_ps + 1);
  const int top = height_at(std::min(drag_from.y(), to.y()));
  const int bottom = height_at(std::max(drag_from.y(), to.y()));
  std::tie(dragged.first_row, dragged.last_row) = layout.rows_between(top, bottom + 1);
  if (drag_all_rows) {
    dragged.first_row = 0;
    dragged.last_row = static_cast<int>(layout.rows().size());
  }
  if (dragged.first_row >= dragged.last_row) {  // In a gap: the row below it.
    dragged.first_row = std::min(dragged.first_row, static_cast<int>(layout.rows().size()) - 1);
    dragged.last_row = dragged.first_row + 1;
  }
  extend_from.reset();
  set_area(dragged, is_final);
}

/// Puts the middle of what is shown at a place of the minimap.
void TimelineView::Impl::jump_to(double minimap_x) {
  const QRect map = geometry().minimap;
  const TimeScale whole(model->begin_ps, std::max(model->end_ps, model->begin_ps + 1), map.left(),
                        map.width());
  const double middle = whole.time_at(std::clamp<double>(minimap_x, map.left(), map.right()));
  const double half = range.span_ps() / 2;
  if (range.move_to(middle - half, middle + half, RangeMove::kPan)) range_changed();
}

void TimelineView::Impl::wheel(const QWheelEvent& event) {
  if (!model) return;
  const QPoint angle = event.angleDelta();
  const double notches = (angle.y() != 0 ? angle.y() : angle.x()) / kNotch;
  pointer = event.position();
  if ((event.modifiers() & Qt::ControlModifier) != 0) {
    if (range.zoom(std::pow(kWheelZoom, notches), anchor_ps())) range_changed();
  } else if ((event.modifiers() & Qt::ShiftModifier) != 0 || angle.y() == 0) {
    if (range.pan(-notches * kWheelPan * range.span_ps())) range_changed();
  } else {
    scroll_to(scroll_y - static_cast<int>(std::lround(notches * 3 * layout.metrics().bar)));
  }
}

}  // namespace ring::gui
