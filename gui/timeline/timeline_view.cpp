#include "gui/timeline/timeline_view.h"

#include <QFocusEvent>
#include <QHelpEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QScrollBar>
#include <QToolTip>
#include <QWheelEvent>
#include <algorithm>
#include <cmath>

#include "core/formats/timeline_csv.h"
#include "core/slice_text.h"
#include "gui/timeline/timeline_impl.h"

namespace ring::gui {
namespace {

std::optional<SliceRef> find_op(const TimelineModel& model, TimelineOrigin origin, OpId op) {
  const ModelRun* run = model.run(origin);
  if (run == nullptr) return std::nullopt;
  const auto& slices = run->timeline().slices;
  const auto found = std::find_if(slices.begin(), slices.end(),
                                  [&](const Slice& slice) { return slice.op == op; });
  if (found == slices.end()) return std::nullopt;
  return SliceRef{origin, static_cast<uint32_t>(found - slices.begin())};
}

}  // namespace

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
  layout = model ? TimelineLayout(*model, mode, metrics) : TimelineLayout();
  place_children();
  scroll_to(scroll_y);
}

QSize TimelineView::Impl::picture_size() const {
  const int bar = scroll_bar->isHidden() ? 0 : scroll_bar->width();
  return {std::max(1, view.width() - bar), std::max(1, view.height())};
}

ViewGeometry TimelineView::Impl::geometry() const {
  return ViewGeometry(picture_size(), gutter_width(&layout, view.font()), layout.metrics().bar);
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
  view.update();
}

void TimelineView::Impl::range_changed() {
  emit view.time_range_changed(range.from_ps(), range.to_ps());
  view.update();
}

TimelineScene TimelineView::Impl::scene() const {
  TimelineScene scene;
  scene.model = model.get();
  scene.layout = &layout;
  scene.from_ps = range.from_ps();
  scene.to_ps = range.to_ps();
  scene.scroll_y = scroll_y;
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

TimelineView::TimelineView(QWidget* parent)
    : QWidget(parent), impl_(std::make_unique<Impl>(*this)) {
  setObjectName(QStringLiteral("timeline"));
  setAccessibleName(QStringLiteral("Timeline"));
  setAccessibleDescription(QStringLiteral("No op is selected"));
  setFocusPolicy(Qt::StrongFocus);
  setMouseTracking(true);
  setAttribute(Qt::WA_OpaquePaintEvent);
  impl_->lay_out();
}
TimelineView::~TimelineView() = default;

void TimelineView::set_runs(std::shared_ptr<const TimelineModel> model) {
  std::optional<std::pair<TimelineOrigin, OpId>> op;
  if (impl_->selected) {
    op = {impl_->selected->origin, impl_->model->slice(*impl_->selected)->op};
  }
  impl_->model = std::move(model);
  impl_->hovered.reset();
  impl_->extend_from.reset();
  impl_->hits.reset();
  impl_->hit_order.clear();
  impl_->selected.reset();
  impl_->area.reset();
  impl_->lay_out();
  const TimelineModel* shown = impl_->model.get();
  impl_->range.set_extent(shown != nullptr ? shown->begin_ps : 0,
                          shown != nullptr ? shown->end_ps : 0);
  if (shown != nullptr && op) impl_->selected = find_op(*shown, op->first, op->second);
  if (op) impl_->select(impl_->selected, false);
  impl_->set_area(std::nullopt, true);
  if (!impl_->search_text.isEmpty()) impl_->search(impl_->search_text);
  impl_->range_changed();
}
const TimelineModel* TimelineView::model() const { return impl_->model.get(); }

void TimelineView::set_time_range(Picoseconds from_ps, Picoseconds to_ps) {
  if (impl_->range.move_to(static_cast<double>(from_ps), static_cast<double>(to_ps),
                           RangeMove::kJump)) {
    impl_->range_changed();
  }
}
std::pair<Picoseconds, Picoseconds> TimelineView::time_range() const {
  return {impl_->range.from_ps(), impl_->range.to_ps()};
}
void TimelineView::zoom_to_fit() {
  if (impl_->range.fit()) impl_->range_changed();
}

void TimelineView::set_cursor_ps(Picoseconds at_ps) {
  if (impl_->cursor_ps == at_ps) return;
  impl_->cursor_ps = at_ps;
  emit cursor_moved(at_ps);
  update();
}
Picoseconds TimelineView::cursor_ps() const { return impl_->cursor_ps.value_or(0); }

void TimelineView::set_layout_mode(LayoutMode mode) {
  if (impl_->mode == mode) return;
  impl_->mode = mode;
  impl_->hovered.reset();
  impl_->lay_out();
  impl_->set_area(std::nullopt, true);
  emit layout_mode_changed(mode);
}
LayoutMode TimelineView::layout_mode() const { return impl_->mode; }
void TimelineView::set_theme(Theme theme) {
  impl_->theme = theme;
  update();
}
Theme TimelineView::theme() const { return impl_->theme; }

void TimelineView::select_slice(std::optional<SliceRef> slice) { impl_->select(slice, true); }
std::optional<SliceRef> TimelineView::selected_slice() const { return impl_->selected; }
std::optional<SliceRef> TimelineView::hovered_slice() const { return impl_->hovered; }
void TimelineView::select_range(Picoseconds from_ps, Picoseconds to_ps) {
  const auto rows = static_cast<int>(impl_->layout.rows().size());
  if (from_ps >= to_ps || rows == 0) {
    impl_->set_area(std::nullopt, true);
  } else {
    impl_->set_area(SelectedArea{from_ps, to_ps, 0, rows}, true);
  }
}
const TimelineSelection& TimelineView::selection() const { return impl_->selection; }

int64_t TimelineView::search(const QString& text) { return impl_->search(text); }
QString TimelineView::search_text() const { return impl_->search_text; }

const std::vector<TimelineMark>& TimelineView::marks() const { return impl_->marks; }
void TimelineView::set_marks(std::vector<TimelineMark> marks) {
  if (impl_->marks == marks) return;
  impl_->marks = std::move(marks);
  emit marks_changed();
  update();
}
int TimelineView::scroll_y() const { return impl_->scroll_y; }
void TimelineView::set_scroll_y(int y) { impl_->scroll_to(y); }
void TimelineView::trigger(TimelineAction action) { impl_->trigger(action); }

void TimelineView::render_to(QPainter& painter, QSize size, const RenderOptions& options) const {
  TimelineScene scene = impl_->scene();
  if (!options.with_pointer) {
    scene.pointer.reset();
    scene.hovered.reset();
    scene.has_focus = false;
  }
  if (options.all_rows) scene.scroll_y = 0;
  PaintCache cache;
  PaintStyle style{options.theme.value_or(impl_->theme), font(), options.pixel_ratio,
                   options.is_vector};
  TimelinePainter(scene, size, style, cache).paint(painter);
}
int TimelineView::full_height() const {
  return impl_->geometry().plot.top() + impl_->layout.height() + 1;
}

std::string TimelineView::visible_csv() const {
  if (!impl_->model) return {};
  const auto [first, last] = impl_->layout.rows_between(
      impl_->scroll_y, impl_->scroll_y + impl_->geometry().plot.height());
  std::vector<Timeline> parts;
  for (const auto origin : {TimelineOrigin::kMeasured, TimelineOrigin::kPredicted}) {
    const ModelRun* run = impl_->model->run(origin);
    if (run == nullptr || !shows(impl_->mode, origin)) continue;
    Timeline part;
    part.origin = origin;
    for (int i = first; i < last; ++i) {
      const LayoutRow& row = impl_->layout.rows()[static_cast<size_t>(i)];
      const int number = origin == TimelineOrigin::kMeasured ? row.measured : row.predicted;
      if (row.kind != RowKind::kBars || number < 0) continue;
      const RowLevels& bars = run->rows[static_cast<size_t>(number)].bars;
      const auto [begin, end] = bars.bars_between(impl_->range.from_ps(), impl_->range.to_ps());
      for (size_t b = begin; b < end; ++b) {
        if (bars.bars()[b].of_class != kWaitClass) {
          part.slices.push_back(run->slice(bars.bars()[b].slice));
        }
      }
    }
    parts.push_back(std::move(part));
  }
  std::vector<const Timeline*> timelines;
  for (const Timeline& part : parts) timelines.push_back(&part);
  return timeline_csv(timelines);
}

QSize TimelineView::sizeHint() const { return {1200, 700}; }
QSize TimelineView::minimumSizeHint() const { return {320, 200}; }

bool TimelineView::event(QEvent* event) {
  switch (event->type()) {
    case QEvent::ToolTip: {
      const auto* const help = static_cast<QHelpEvent*>(event);
      const auto slice = impl_->slice_at(help->pos());
      if (!slice) {
        QToolTip::hideText();
        event->ignore();
        return true;
      }
      QToolTip::showText(help->globalPos(), describe(*slice), this);
      return true;
    }
    case QEvent::FontChange:
    case QEvent::StyleChange:
      impl_->lay_out();
      break;
    case QEvent::FocusIn:
    case QEvent::FocusOut:
      update();
      break;
    default:
      break;
  }
  return QWidget::event(event);
}

QString TimelineView::describe(SliceRef ref) const {
  const Slice* slice = impl_->model ? impl_->model->slice(ref) : nullptr;
  if (slice == nullptr) return {};
  const auto partner = impl_->model->pairs.partner(ref);
  QStringList lines;
  for (const std::string& line :
       describe_slice(*slice, ref.origin, partner ? impl_->model->slice(*partner) : nullptr)) {
    lines.push_back(QString::fromStdString(line));
  }
  return lines.join(QLatin1Char('\n'));
}

void TimelineView::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  const TimelineScene scene = impl_->scene();
  const PaintStyle style{impl_->theme, font(), devicePixelRatioF(), false};
  TimelinePainter timeline(scene, impl_->picture_size(), style, impl_->cache);
  timeline.paint(painter);
  if (!impl_->scroll_bar->isHidden()) {
    painter.fillRect(QRect(impl_->picture_size().width(), 0, impl_->scroll_bar->width(), height()),
                     colors_of(impl_->theme).panel);
  }
}

void TimelineView::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  impl_->place_children();
  impl_->scroll_to(impl_->scroll_y);
}

void TimelineView::wheelEvent(QWheelEvent* event) {
  impl_->wheel(*event);
  event->accept();
}
void TimelineView::mousePressEvent(QMouseEvent* event) { impl_->press(*event); }
void TimelineView::mouseMoveEvent(QMouseEvent* event) { impl_->move(*event); }
void TimelineView::mouseReleaseEvent(QMouseEvent* event) { impl_->release(*event); }

void TimelineView::mouseDoubleClickEvent(QMouseEvent* event) {
  if (event->button() != Qt::LeftButton) return;
  const auto slice = impl_->slice_at(event->position());
  if (!slice) return;
  impl_->select(slice, false);
  emit activated(*slice);
}

void TimelineView::leaveEvent(QEvent* event) {
  QWidget::leaveEvent(event);
  impl_->pointer.reset();
  impl_->set_hovered(std::nullopt);
  update();
}

}  // namespace ring::gui
