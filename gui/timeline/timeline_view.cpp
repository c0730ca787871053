#include "gui/timeline/timeline_view.h"

#include <QFocusEvent>
#include <QHelpEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPaintEvent>
#include <QPainter>
#include <QScrollBar>
#include <QToolTip>
#include <QWheelEvent>
#include <algorithm>
#include <cmath>

#include "core/formats/timeline_csv.h"
#include "core/slice_text.h"
#include "gui/timeline/timeline_header.h"
#include "gui/timeline/timeline_impl.h"

namespace ring::gui {
namespace {

bool does_same(const Slice& a, const Slice& b) {
  return a.kind == b.kind && a.lane == b.lane && a.step == b.step && a.peer == b.peer &&
         a.kv_shard == b.kv_shard;
}

/// The op of that number, where it still is what it was.
std::optional<SliceRef> find_op(const TimelineModel& model, TimelineOrigin origin,
                                const Slice& of) {
  const ModelRun* run = model.run(origin);
  if (run == nullptr) return std::nullopt;
  const auto& slices = run->timeline().slices;
  const auto found = std::find_if(slices.begin(), slices.end(),
                                  [&](const Slice& slice) { return slice.op == of.op; });
  if (found == slices.end() || !does_same(*found, of)) return std::nullopt;
  return SliceRef{origin, static_cast<uint32_t>(found - slices.begin())};
}

}  // namespace

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
  std::optional<std::pair<TimelineOrigin, Slice>> op;
  if (impl_->selected) {
    op = {impl_->selected->origin, *impl_->model->slice(*impl_->selected)};
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

void TimelineView::start_over() {
  impl_->clear();
  set_marks({});
  impl_->next_mark = 0;
  impl_->cursor_ps.reset();
  Q_EMIT cursor_moved(0);
  impl_->scroll_to(0);
  zoom_to_fit();
}

void TimelineView::set_cursor_ps(Picoseconds at_ps) {
  if (impl_->cursor_ps == at_ps) return;
  impl_->cursor_ps = at_ps;
  Q_EMIT cursor_moved(at_ps);
  impl_->refresh();
}
Picoseconds TimelineView::cursor_ps() const { return impl_->cursor_ps.value_or(0); }

void TimelineView::set_layout_mode(LayoutMode mode) {
  if (impl_->mode == mode) return;
  impl_->mode = mode;
  impl_->hovered.reset();
  impl_->lay_out();
  impl_->set_area(std::nullopt, true);
  Q_EMIT layout_mode_changed(mode);
}
LayoutMode TimelineView::layout_mode() const { return impl_->mode; }
void TimelineView::set_theme(Theme theme) {
  impl_->theme = theme;
  impl_->refresh();
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
  Q_EMIT marks_changed();
  impl_->refresh();
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
  scene.header_lines = header_lines(scene.model, impl_->mode, font(), size.width());
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
      impl_->refresh();
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

void TimelineView::paintEvent(QPaintEvent* event) {
  QPainter painter(this);
  const TimelineScene scene = impl_->scene();
  PaintStyle style{impl_->theme, font(), devicePixelRatioF(), false};
  style.writes_directly = event->rect().contains(QRect(QPoint(0, 0), impl_->picture_size()));
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
  Q_EMIT activated(*slice);
}

void TimelineView::leaveEvent(QEvent* event) {
  QWidget::leaveEvent(event);
  impl_->pointer.reset();
  impl_->set_hovered(std::nullopt);
  impl_->refresh();
}

}  // namespace ring::gui
