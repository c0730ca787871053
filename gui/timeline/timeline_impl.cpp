#include "gui/timeline/timeline_impl.h"

#include <QScrollBar>
#include <QSignalBlocker>
#include <algorithm>

#include "gui/timeline/timeline_header.h"

namespace ring::gui {

TimelineView::Impl::Impl(TimelineView& owner)
    : view(owner),
      scroll_bar(new QScrollBar(Qt::Vertical, &owner)),
      search_bar(new SearchBar(&owner)) {
  scroll_bar->setAccessibleName(QStringLiteral("Ranks"));
  scroll_bar->hide();
  connect(scroll_bar, &QScrollBar::valueChanged, &view, [this](int y) { scroll_to(y); });
  connect(search_bar, &SearchBar::text_changed, &view,
          [this](const QString& text) { search(text); });
  connect(search_bar, &SearchBar::next_wanted, &view, [this](int by) { next_hit(by); });
  connect(search_bar, &SearchBar::closed, &view, [this] {
    search_bar->hide();
    search({});
    view.setFocus(Qt::OtherFocusReason);
  });
}

void TimelineView::Impl::lay_out() {
  const RowMetrics metrics(view.fontMetrics().height());
  ++layouts;
  layout = model ? TimelineLayout(*model, mode, metrics, layouts) : TimelineLayout();
  gutter = gutter_width(&layout, view.font());
  place_children();
  scroll_to(scroll_y);
}

QSize TimelineView::Impl::picture_size() const {
  const int bar = scroll_bar->isHidden() ? 0 : scroll_bar->width();
  return {std::max(1, view.width() - bar), std::max(1, view.height())};
}

ViewGeometry TimelineView::Impl::geometry() const {
  return ViewGeometry(picture_size(), gutter, layout.metrics().bar, header_lines);
}

TimeScale TimelineView::Impl::scale() const {
  const QRect plot = geometry().plot;
  return {range.from_ps(), range.to_ps(), static_cast<double>(plot.left()),
          static_cast<double>(plot.width())};
}

int TimelineView::Impl::most_scroll() const {
  return std::max(0, layout.height() - geometry().plot.height());
}

void TimelineView::Impl::place_children() {
  header_lines = ring::gui::header_lines(model.get(), mode, view.font(), view.width());
  const QRect plot = geometry().plot;
  const bool is_needed = layout.height() > plot.height();
  scroll_bar->setVisible(is_needed);
  const int width = scroll_bar->sizeHint().width();
  scroll_bar->setGeometry(view.width() - width, plot.top(), width, plot.height());
  const QSignalBlocker blocker(scroll_bar);
  scroll_bar->setRange(0, most_scroll());
  scroll_bar->setPageStep(plot.height());
  scroll_bar->setSingleStep(3 * layout.metrics().bar);
  search_bar->adjustSize();
  const int search_width = std::min(std::max(420, search_bar->sizeHint().width()), view.width());
  search_bar->setGeometry(picture_size().width() - search_width - 4, plot.top() + 4, search_width,
                          search_bar->sizeHint().height());
}

void TimelineView::Impl::scroll_to(int y) {
  scroll_y = std::clamp(y, 0, most_scroll());
  const QSignalBlocker blocker(scroll_bar);
  scroll_bar->setValue(scroll_y);
  refresh();
}

void TimelineView::Impl::range_changed() {
  Q_EMIT view.time_range_changed(range.from_ps(), range.to_ps());
  refresh();
}

/// Without the scroll bar, which takes longer to draw than the rest.
void TimelineView::Impl::refresh() { view.update(QRect(QPoint(0, 0), picture_size())); }

TimelineScene TimelineView::Impl::scene() const {
  TimelineScene scene;
  scene.model = model.get();
  scene.layout = &layout;
  scene.from_ps = range.from_ps();
  scene.to_ps = range.to_ps();
  scene.scroll_y = scroll_y;
  scene.gutter = gutter;
  scene.header_lines = header_lines;
  scene.hovered = hovered;
  scene.selected = selected;
  scene.area = area;
  scene.cursor_ps = cursor_ps;
  scene.marks = marks;
  scene.hits = hits.get();
  scene.pointer = pointer;
  scene.has_focus = view.hasFocus();
  return scene;
}

}  // namespace ring::gui
