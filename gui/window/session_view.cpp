#include "gui/window/session_view.h"

#include <QTabWidget>
#include <array>

#include "gui/window/main_window.h"

namespace ring::gui {

namespace {

constexpr auto kTabs = std::to_array<const char*>({"timeline", "sweeps", "ring"});
constexpr auto kSweeps =
    std::to_array<const char*>({"block_depth", "seq_len", "ring_size", "strategies"});

std::string layout_name(LayoutMode mode) {
  switch (mode) {
    case LayoutMode::kMeasured:
      return "measured";
    case LayoutMode::kPredicted:
      return "predicted";
    case LayoutMode::kStacked:
      return "stacked";
    case LayoutMode::kOverlaid:
      return "overlaid";
  }
  return "stacked";
}

LayoutMode layout_of(const std::string& name) {
  for (const LayoutMode mode : {LayoutMode::kMeasured, LayoutMode::kPredicted, LayoutMode::kStacked,
                                LayoutMode::kOverlaid}) {
    if (layout_name(mode) == name) return mode;
  }
  return LayoutMode::kStacked;
}

template <size_t N>
int index_of(const std::array<const char*, N>& names, const std::string& name) {
  for (size_t i = 0; i < N; ++i) {
    if (names[i] == name) return static_cast<int>(i);
  }
  return 0;
}

void restore_timeline(const SessionView& view, TimelineView& timeline) {
  timeline.set_layout_mode(layout_of(view.layout));
  std::vector<TimelineMark> marks;
  for (const SessionMark& mark : view.marks) {
    marks.push_back({mark.at_ps, QString::fromStdString(mark.label)});
  }
  timeline.set_marks(std::move(marks));
  timeline.search(QString::fromStdString(view.search));
  if (view.is_fitted) {
    timeline.zoom_to_fit();
  } else {
    timeline.set_time_range(view.from_ps, view.to_ps);
  }
  timeline.set_cursor_ps(view.cursor_ps);
  timeline.set_scroll_y(static_cast<int>(view.scroll_y));
}

}  // namespace

SessionView view_of(MainWindow& window) {
  const TimelineView& timeline = window.timeline();
  SessionView view;
  view.tab = kTabs[static_cast<size_t>(window.tabs().currentIndex())];
  view.theme = window.theme() == Theme::kDark ? "dark" : "light";
  view.layout = layout_name(timeline.layout_mode());
  std::tie(view.from_ps, view.to_ps) = timeline.time_range();
  const auto model = window.workspace().model();
  view.is_fitted = !model || (view.from_ps <= model->begin_ps && view.to_ps >= model->end_ps);
  view.cursor_ps = timeline.cursor_ps();
  view.scroll_y = timeline.scroll_y();
  view.search = timeline.search_text().toStdString();
  for (const TimelineMark& mark : timeline.marks()) {
    view.marks.push_back({mark.at_ps, mark.label.toStdString()});
  }
  view.sweep = kSweeps[static_cast<size_t>(window.sweeps().kind())];
  view.sweep_value = static_cast<int64_t>(window.sweeps().plot().value());
  view.hop_colors = window.ring().coloring() == HopColoring::kSlack ? "slack" : "utilization";
  view.geometry = window.saveGeometry().toBase64().toStdString();
  view.docks = window.saveState().toBase64().toStdString();
  return view;
}

void restore_view(const SessionView& view, MainWindow& window) {
  window.set_theme(view.theme == "dark" ? Theme::kDark : Theme::kLight);
  window.restoreGeometry(QByteArray::fromBase64(QByteArray::fromStdString(view.geometry)));
  window.restoreState(QByteArray::fromBase64(QByteArray::fromStdString(view.docks)));
  window.sweeps().set_kind(kSweepKinds[index_of(kSweeps, view.sweep)]);
  window.sweeps().set_value(kCandidateValues[view.sweep_value]);
  window.ring().set_coloring(view.hop_colors == "slack" ? HopColoring::kSlack
                                                        : HopColoring::kUtilization);
  window.tabs().setCurrentIndex(index_of(kTabs, view.tab));
  // Once, when the runs of the session have come.
  QObject::connect(
      &window.workspace(), &Workspace::studied, &window,
      [view, &window] { restore_timeline(view, window.timeline()); },
      static_cast<Qt::ConnectionType>(Qt::QueuedConnection | Qt::SingleShotConnection));
}

}  // namespace ring::gui
