// What the view can be told to do: the table of actions, their keys, and doing them.
#include <QKeyEvent>
#include <QKeySequence>
#include <algorithm>
#include <array>
#include <cmath>

#include "gui/timeline/timeline_impl.h"

namespace ring::gui {
namespace {

using enum TimelineAction;

constexpr std::array kActions{
    TimelineActionInfo{kZoomIn, "Zoom in", "W", "Ctrl+wheel up"},
    TimelineActionInfo{kZoomOut, "Zoom out", "S", "Ctrl+wheel down"},
    TimelineActionInfo{kPanLeft, "Earlier", "A", "Shift+wheel up; drag with the middle button"},
    TimelineActionInfo{kPanRight, "Later", "D", "Shift+wheel down; drag with the middle button"},
    TimelineActionInfo{kScrollUp, "Ranks above", "PgUp", "wheel up"},
    TimelineActionInfo{kScrollDown, "Ranks below", "PgDown", "wheel down"},
    TimelineActionInfo{kFit, "Show the whole run", "Home", ""},
    TimelineActionInfo{kBack, "Back to the part shown before", "Backspace", ""},
    TimelineActionInfo{kCenterThenFit, "Centre the selection, then fit it", "F", ""},
    TimelineActionInfo{kZoomToSelection, "Zoom to the selection", "Z", ""},
    TimelineActionInfo{kPreviousSlice, "Previous op of the lane", ",; Left", "click an op"},
    TimelineActionInfo{kNextSlice, "Next op of the lane", ".; Right", "click an op"},
    TimelineActionInfo{kRowAbove, "Op in the row above", "Up", ""},
    TimelineActionInfo{kRowBelow, "Op in the row below", "Down", ""},
    TimelineActionInfo{kFlowBack, "To what led to this op", "[", ""},
    TimelineActionInfo{kFlowForward, "To what this op led to", "]", ""},
    TimelineActionInfo{kExtendLeft, "Select a range: one op less", "Shift+Left",
                       "drag; Shift+drag for all ranks"},
    TimelineActionInfo{kExtendRight, "Select a range: one op more", "Shift+Right",
                       "drag; Shift+drag for all ranks"},
    TimelineActionInfo{kActivate, "Ask about the op", "Return; Enter", "double click"},
    TimelineActionInfo{kClear, "Clear selection and search", "Esc", "click beside the ops"},
    TimelineActionInfo{kMark, "Set or remove a mark", "M", ""},
    TimelineActionInfo{kSearch, "Search", "/", ""},
    TimelineActionInfo{kNextHit, "Next op found", "N", ""},
    TimelineActionInfo{kPreviousHit, "Previous op found", "Shift+N", ""},
    TimelineActionInfo{kShowMeasured, "Measured only", "1", ""},
    TimelineActionInfo{kShowPredicted, "Predicted only", "2", ""},
    TimelineActionInfo{kShowOverlaid, "Both, overlaid, with differences", "3", ""},
    TimelineActionInfo{kShowStacked, "Both, one above the other", "4", ""},
};

constexpr double kZoomStep = 1.25;
constexpr double kPanStep = 0.1;  ///< Of what is shown.
constexpr double kMarginShare = 0.1;
constexpr int kMarkReach = 5;  ///< A mark this near is meant, in units of the widget.

/// Letters and signs are known by what they type, wherever they are on the keyboard.
bool is_pressed(const QString& key, const QKeyEvent& event) {
  if (key.size() == 1 && !key[0].isLetterOrNumber()) return event.text() == key;
  const QKeySequence sequence(key);
  const auto combination =
      QKeyCombination(event.modifiers() & ~Qt::KeypadModifier, static_cast<Qt::Key>(event.key()));
  return sequence.count() == 1 && sequence[0] == combination;
}

QString mark_label(int number) {
  if (number < 26) return QString(QChar(static_cast<char16_t>(u'A' + number)));
  return QString::number(number + 1);
}

}  // namespace

std::span<const TimelineActionInfo> timeline_actions() { return kActions; }

void TimelineView::keyPressEvent(QKeyEvent* event) {
  for (const TimelineActionInfo& info : kActions) {
    for (const QString& key :
         QString::fromLatin1(info.keys).split(QStringLiteral("; "), Qt::SkipEmptyParts)) {
      if (!is_pressed(key, *event)) continue;
      trigger(info.action);
      event->accept();
      return;
    }
  }
  QWidget::keyPressEvent(event);
}

double TimelineView::Impl::anchor_ps() const {
  const QRect plot = geometry().plot;
  if (pointer && pointer->x() >= plot.left() && pointer->x() <= plot.right()) {
    return scale().time_at(pointer->x());
  }
  if (cursor_ps && *cursor_ps >= range.from_ps() && *cursor_ps <= range.to_ps()) {
    return static_cast<double>(*cursor_ps);
  }
  return static_cast<double>(range.from_ps()) + range.span_ps() / 2;
}

void TimelineView::Impl::trigger(TimelineAction action) {
  const int page = std::max(1, geometry().plot.height() * 3 / 4);
  const auto moved = [&](bool has_changed) {
    if (has_changed) range_changed();
  };
  switch (action) {
    case kZoomIn:
      return moved(range.zoom(kZoomStep, anchor_ps()));
    case kZoomOut:
      return moved(range.zoom(1 / kZoomStep, anchor_ps()));
    case kPanLeft:
      return moved(range.pan(-kPanStep * range.span_ps()));
    case kPanRight:
      return moved(range.pan(kPanStep * range.span_ps()));
    case kScrollUp:
      return scroll_to(scroll_y - page);
    case kScrollDown:
      return scroll_to(scroll_y + page);
    case kFit:
      return moved(range.fit());
    case kBack:
      return moved(range.back());
    case kCenterThenFit:
      return center_then_fit();
    case kZoomToSelection:
      return zoom_to_selection();
    case kPreviousSlice:
      return step(-1, false);
    case kNextSlice:
      return step(1, false);
    case kRowAbove:
      return change_row(-1);
    case kRowBelow:
      return change_row(1);
    case kFlowBack:
      return follow(false);
    case kFlowForward:
      return follow(true);
    case kExtendLeft:
      return step(-1, true);
    case kExtendRight:
      return step(1, true);
    case kActivate:
      if (selected) Q_EMIT view.activated(*selected);
      return;
    case kClear:
      return clear();
    case kMark:
      return toggle_mark();
    case kSearch:
      return search_bar->open();
    case kNextHit:
      return next_hit(1);
    case kPreviousHit:
      return next_hit(-1);
    case kShowMeasured:
      return view.set_layout_mode(LayoutMode::kMeasured);
    case kShowPredicted:
      return view.set_layout_mode(LayoutMode::kPredicted);
    case kShowOverlaid:
      return view.set_layout_mode(LayoutMode::kOverlaid);
    case kShowStacked:
      return view.set_layout_mode(LayoutMode::kStacked);
  }
}

void TimelineView::Impl::clear() {
  search_bar->hide();
  search({});
  search_bar->set_text({});
  set_area(std::nullopt, true);
  select(std::nullopt, false);
}

void TimelineView::Impl::center_then_fit() {
  const auto times = selected_times();
  if (!times) return;
  const auto begin = static_cast<double>(times->first), end = static_cast<double>(times->second);
  const auto from = static_cast<double>(range.from_ps()), to = static_cast<double>(range.to_ps());
  const double shift = (begin + end) / 2 - (from + to) / 2;
  if (std::abs(shift) > range.span_ps() / 500 &&
      range.move_to(from + shift, to + shift, RangeMove::kJump)) {
    return range_changed();
  }
  zoom_to_selection();
}

void TimelineView::Impl::zoom_to_selection() {
  const auto times = selected_times();
  if (!times) return;
  const auto begin = static_cast<double>(times->first), end = static_cast<double>(times->second);
  const double margin = std::max((end - begin) * kMarginShare, kLeastSpan / 4);
  if (range.move_to(begin - margin, end + margin, RangeMove::kJump)) range_changed();
}

void TimelineView::Impl::toggle_mark() {
  if (!model) return;
  const auto at_ps = static_cast<Picoseconds>(std::llround(anchor_ps()));
  const double reach_ps = kMarkReach * scale().ps_per_unit();
  const auto near = std::find_if(marks.begin(), marks.end(), [&](const TimelineMark& mark) {
    return std::abs(static_cast<double>(mark.at_ps) - static_cast<double>(at_ps)) <= reach_ps;
  });
  if (near != marks.end()) {
    marks.erase(near);
  } else {
    marks.push_back({at_ps, mark_label(next_mark++)});
    std::sort(marks.begin(), marks.end(),
              [](const TimelineMark& a, const TimelineMark& b) { return a.at_ps < b.at_ps; });
  }
  Q_EMIT view.marks_changed();
  refresh();
}

}  // namespace ring::gui
