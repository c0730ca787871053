#include "gui/timeline/timeline_view.h"

#include <QPainter>

namespace ring::gui {

class TimelineView::Impl {
 public:
  std::shared_ptr<const TimelineModel> model;
  Picoseconds from_ps = 0, to_ps = 1;
  Picoseconds cursor_ps = 0;
  LayoutMode mode = LayoutMode::kStacked;
  Theme theme = Theme::kLight;
  TimelineSelection selection;
  std::optional<SliceRef> selected, hovered;
  std::vector<TimelineMark> marks;
  QString search_text;
  int scroll_y = 0;
};

TimelineView::TimelineView(QWidget* parent) : QWidget(parent), impl_(std::make_unique<Impl>()) {
  setAccessibleName(tr("Timeline"));
  setFocusPolicy(Qt::StrongFocus);
}
TimelineView::~TimelineView() = default;

void TimelineView::set_runs(std::shared_ptr<const TimelineModel> model) {
  impl_->model = std::move(model);
  zoom_to_fit();
}
const TimelineModel* TimelineView::model() const { return impl_->model.get(); }

void TimelineView::set_time_range(Picoseconds from_ps, Picoseconds to_ps) {
  impl_->from_ps = from_ps;
  impl_->to_ps = std::max(from_ps + 1, to_ps);
  emit time_range_changed(impl_->from_ps, impl_->to_ps);
  update();
}
std::pair<Picoseconds, Picoseconds> TimelineView::time_range() const {
  return {impl_->from_ps, impl_->to_ps};
}
void TimelineView::zoom_to_fit() { set_time_range(0, impl_->model ? impl_->model->end_ps : 1); }

void TimelineView::set_cursor_ps(Picoseconds at_ps) {
  impl_->cursor_ps = at_ps;
  emit cursor_moved(at_ps);
  update();
}
Picoseconds TimelineView::cursor_ps() const { return impl_->cursor_ps; }

void TimelineView::set_layout_mode(LayoutMode mode) {
  impl_->mode = mode;
  emit layout_mode_changed(mode);
  update();
}
LayoutMode TimelineView::layout_mode() const { return impl_->mode; }
void TimelineView::set_theme(Theme theme) {
  impl_->theme = theme;
  update();
}
Theme TimelineView::theme() const { return impl_->theme; }

void TimelineView::select_slice(std::optional<SliceRef> slice) {
  impl_->selected = slice;
  emit slice_selected(slice);
  update();
}
std::optional<SliceRef> TimelineView::selected_slice() const { return impl_->selected; }
std::optional<SliceRef> TimelineView::hovered_slice() const { return impl_->hovered; }
void TimelineView::select_range(Picoseconds from_ps, Picoseconds to_ps) {
  impl_->selection = {from_ps >= to_ps, from_ps, to_ps, {}, {}, {}};
  emit selection_changed(impl_->selection);
  update();
}
const TimelineSelection& TimelineView::selection() const { return impl_->selection; }

int64_t TimelineView::search(const QString& text) {
  impl_->search_text = text;
  emit search_changed(text, 0);
  return 0;
}
QString TimelineView::search_text() const { return impl_->search_text; }

const std::vector<TimelineMark>& TimelineView::marks() const { return impl_->marks; }
void TimelineView::set_marks(std::vector<TimelineMark> marks) {
  impl_->marks = std::move(marks);
  emit marks_changed();
  update();
}
int TimelineView::scroll_y() const { return impl_->scroll_y; }
void TimelineView::set_scroll_y(int y) { impl_->scroll_y = y; }

void TimelineView::trigger(TimelineAction action) {
  if (action == TimelineAction::kFit) zoom_to_fit();
}
std::span<const TimelineActionInfo> timeline_actions() { return {}; }

void TimelineView::render_to(QPainter& painter, QSize size, const RenderOptions& options) const {
  painter.fillRect(QRect(QPoint(0, 0), size),
                   colors_of(options.theme.value_or(impl_->theme)).background);
}
int TimelineView::full_height() const { return height(); }
std::string TimelineView::visible_csv() const { return {}; }

QSize TimelineView::sizeHint() const { return {1200, 700}; }
QSize TimelineView::minimumSizeHint() const { return {320, 200}; }

bool TimelineView::event(QEvent* event) { return QWidget::event(event); }
void TimelineView::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  render_to(painter, size(), {});
}
void TimelineView::resizeEvent(QResizeEvent* event) { QWidget::resizeEvent(event); }
void TimelineView::keyPressEvent(QKeyEvent* event) { QWidget::keyPressEvent(event); }
void TimelineView::wheelEvent(QWheelEvent* event) { QWidget::wheelEvent(event); }
void TimelineView::mousePressEvent(QMouseEvent* event) { QWidget::mousePressEvent(event); }
void TimelineView::mouseMoveEvent(QMouseEvent* event) { QWidget::mouseMoveEvent(event); }
void TimelineView::mouseReleaseEvent(QMouseEvent* event) { QWidget::mouseReleaseEvent(event); }
void TimelineView::mouseDoubleClickEvent(QMouseEvent* event) {
  QWidget::mouseDoubleClickEvent(event);
}
void TimelineView::leaveEvent(QEvent* event) { QWidget::leaveEvent(event); }

}  // namespace ring::gui
