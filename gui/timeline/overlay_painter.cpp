// What lies over the rows: ends of runs, the selected range, flows, marks, cursor, pointer, focus.
#include <QPainter>
#include <QPainterPath>
#include <algorithm>
#include <cmath>

#include "core/time_ticks.h"
#include "gui/timeline/timeline_painter.h"

namespace ring::gui {
namespace {

/// Flows of one slice in each direction; more would hide what they are to show.
constexpr size_t kMostFlows = 24;

struct FlowLook {
  QColor color;
  Qt::PenStyle style;
};

FlowLook look_of(FlowKind kind, const ThemeColors& colors) {
  switch (kind) {
    case FlowKind::kMessage:
      return {op_color(OpKind::kReceive), Qt::SolidLine};
    case FlowKind::kDependency:
      return {colors.text, Qt::SolidLine};
    case FlowKind::kBufferCredit:
      return {colors.mark, Qt::DashLine};
  }
  return {colors.text, Qt::SolidLine};
}

/// A curve from the end of one bar to the beginning of another, with a head.
void draw_flow(QPainter& painter, QPointF from, QPointF to, const FlowLook& look) {
  const double reach = std::clamp(std::abs(to.x() - from.x()) / 2, 14.0, 120.0);
  QPainterPath path(from);
  path.cubicTo(from + QPointF(reach, 0), to - QPointF(reach, 0), to);
  painter.setPen(QPen(look.color, 1, look.style));
  painter.setBrush(Qt::NoBrush);
  painter.drawPath(path);
  const QPointF head[] = {to, to + QPointF(-6, -3), to + QPointF(-6, 3)};
  painter.setPen(Qt::NoPen);
  painter.setBrush(look.color);
  painter.drawPolygon(head, 3);
}

}  // namespace

/// As exact as a place in the picture is.
QString TimelinePainter::time_text(double at_ps) const {
  return QString::fromStdString(
      time_label(static_cast<Picoseconds>(std::llround(at_ps)), scale_.ps_per_unit()));
}

std::optional<QRectF> TimelinePainter::rect_of(SliceRef ref) const {
  const auto number = scene_.layout->row_of(*scene_.model, ref);
  if (!number) return std::nullopt;
  const LayoutRow& row = scene_.layout->rows()[static_cast<size_t>(*number)];
  const Slice& slice = scene_.model->run(ref.origin)->slice(ref.slice);
  const double y = geometry_.plot.top() - scene_.scroll_y + scene_.layout->line_y(row, ref.origin);
  const double left = scale_.x_of(slice.start_ps);
  return QRectF(left, y, scale_.x_of(slice.end_ps) - left,
                scene_.layout->line_height(row, ref.origin));
}

void TimelinePainter::paint_plot_overlay(QPainter& painter) {
  painter.save();
  painter.setClipRect(geometry_.plot, Qt::IntersectClip);
  paint_ends(painter);
  painter.setRenderHint(QPainter::Antialiasing);
  paint_area(painter);
  if (scene_.hovered && scene_.hovered != scene_.selected) {
    paint_slice_frame(painter, *scene_.hovered, colors_.text, 1);
  }
  if (scene_.selected) paint_slice_frame(painter, *scene_.selected, colors_.accent, 2.5);
  paint_flows(painter);
  painter.restore();
}

void TimelinePainter::paint_flags(QPainter& painter) {
  painter.save();
  painter.setClipRect(QRect(geometry_.plot.left(), geometry_.ruler.top(), geometry_.plot.width(),
                            size_.height() - geometry_.ruler.top()),
                      Qt::IntersectClip);
  paint_marks(painter);
  paint_cursor(painter);
  painter.restore();
  if (!scene_.has_focus) return;
  painter.setPen(QPen(colors_.accent, 1));
  painter.setBrush(Qt::NoBrush);
  painter.drawRect(QRectF(0.5, 0.5, size_.width() - 1, size_.height() - 1));
}

void TimelinePainter::paint_ends(QPainter& painter) {
  for (const auto origin : {TimelineOrigin::kMeasured, TimelineOrigin::kPredicted}) {
    const ModelRun* run = scene_.model->run(origin);
    if (run == nullptr || !shows(scene_.layout->mode(), origin)) continue;
    const double x = std::floor(scale_.x_of(run->makespan_ps)) + 0.5;
    if (x < geometry_.plot.left() || x > geometry_.plot.right() + 1) continue;
    const bool is_measured = origin == TimelineOrigin::kMeasured;
    painter.setPen(QPen(colors_.text, 1, is_measured ? Qt::SolidLine : Qt::DashLine));
    const int bottom = std::min(geometry_.plot.bottom(),
                                geometry_.plot.top() - scene_.scroll_y + scene_.layout->height());
    painter.drawLine(QPointF(x, geometry_.plot.top()), QPointF(x, bottom));
  }
}

void TimelinePainter::paint_area(QPainter& painter) {
  if (!scene_.area) return;
  const SelectedArea& area = *scene_.area;
  const auto& rows = scene_.layout->rows();
  if (area.first_row >= area.last_row || area.last_row > static_cast<int>(rows.size())) return;
  const LayoutRow& first = rows[static_cast<size_t>(area.first_row)];
  const LayoutRow& last = rows[static_cast<size_t>(area.last_row) - 1];
  const double left = std::max<double>(scale_.x_of(area.from_ps), geometry_.plot.left() - 2);
  const double right = std::min<double>(scale_.x_of(area.to_ps), geometry_.plot.right() + 2);
  const double top = std::max<double>(top_of(first) - 2, geometry_.plot.top() - 2);
  const double bottom =
      std::min<double>(top_of(last) + last.height + 2, geometry_.plot.bottom() + 2);
  if (right < left || bottom < top) return;
  QColor fill = colors_.accent;
  fill.setAlphaF(0.14F);
  painter.fillRect(QRectF(left, top, right - left, bottom - top), fill);
  painter.setPen(QPen(colors_.accent, 1));
  painter.setBrush(Qt::NoBrush);
  painter.drawRect(QRectF(left, top, right - left, bottom - top));
}

void TimelinePainter::paint_slice_frame(QPainter& painter, SliceRef slice, const QColor& color,
                                        double width) {
  auto box = rect_of(slice);
  if (!box) return;
  // Far ends outside the picture are cut, for the sake of the number range of the engine.
  box->setLeft(
      std::clamp(box->left(), geometry_.plot.left() - 10.0, geometry_.plot.right() + 10.0));
  box->setRight(
      std::clamp(box->right(), geometry_.plot.left() - 10.0, geometry_.plot.right() + 10.0));
  if (box->width() < 3) box->adjust(-(3 - box->width()) / 2, 0, (3 - box->width()) / 2, 0);
  painter.setPen(QPen(color, width));
  painter.setBrush(Qt::NoBrush);
  painter.drawRect(box->adjusted(-width / 2, -width / 2, width / 2, width / 2));
}

void TimelinePainter::paint_flows(QPainter& painter) {
  const auto of = scene_.hovered ? scene_.hovered : scene_.selected;
  if (!of) return;
  const ModelRun* run = scene_.model->run(of->origin);
  const auto self = rect_of(*of);
  if (run == nullptr || !self) return;
  const double far_left = geometry_.plot.left() - 200.0, far_right = geometry_.plot.right() + 200.0;
  const auto limited = [&](double x) { return std::clamp(x, far_left, far_right); };
  const auto draw = [&](std::span<const Flow> flows, bool is_into) {
    for (const Flow& flow : flows.first(std::min(flows.size(), kMostFlows))) {
      const auto other = rect_of({of->origin, flow.slice});
      if (!other) continue;
      const QRectF& source = is_into ? *other : *self;
      const QRectF& target = is_into ? *self : *other;
      // A message is under way while both bars last; other flows go from end to beginning.
      const bool is_message = flow.kind == FlowKind::kMessage;
      const double from = is_message ? source.left() : source.right();
      const double to = is_message ? target.right() : target.left();
      draw_flow(painter, QPointF(limited(from), source.center().y()),
                QPointF(limited(to), target.center().y()), look_of(flow.kind, colors_));
    }
  };
  const auto into = run->flows.into(of->slice), out = run->flows.out_of(of->slice);
  draw(into, true);
  draw(out, false);
  const size_t left_out = into.size() - std::min(into.size(), kMostFlows) + out.size() -
                          std::min(out.size(), kMostFlows);
  if (left_out == 0) return;
  painter.setPen(colors_.text);
  painter.drawText(QPointF(limited(self->right()) + 6, self->bottom()),
                   QStringLiteral("%1 more arrows").arg(left_out));
}

/// At the line of the mark, or beside a time that stands there.
QRectF TimelinePainter::mark_flag(const TimelineMark& mark) const {
  QRectF flag(std::floor(scale_.x_of(mark.at_ps)) + 0.5, geometry_.ruler.top() + 1,
              font_.horizontalAdvance(mark.label) + 8, font_.height());
  const auto pointer = pointer_flag(), cursor = cursor_flag();
  for (const auto& time : {pointer, cursor, pointer}) {
    if (time && time->intersects(flag)) flag.moveLeft(time->right() + 1);
  }
  return flag;
}

QRectF TimelinePainter::time_flag(double x, const QString& text) const {
  const double width = font_.horizontalAdvance(text) + 10;
  const double left =
      std::clamp(x - width / 2, static_cast<double>(geometry_.ruler.left()),
                 std::max<double>(geometry_.ruler.left(), geometry_.ruler.right() + 1 - width));
  return QRectF(left, geometry_.ruler.bottom() - font_.height() - 1, width, font_.height() + 2);
}

std::optional<QRectF> TimelinePainter::cursor_flag() const {
  if (!scene_.cursor_ps) return std::nullopt;
  const double x = scale_.x_of(*scene_.cursor_ps);
  if (x < geometry_.plot.left() || x > geometry_.plot.right() + 1) return std::nullopt;
  return time_flag(x, time_text(static_cast<double>(*scene_.cursor_ps)));
}

/// Beside that of the cursor where both would be at one place.
std::optional<QRectF> TimelinePainter::pointer_flag() const {
  if (!scene_.pointer || !geometry_.plot.contains(scene_.pointer->toPoint())) return std::nullopt;
  QRectF flag = time_flag(scene_.pointer->x(), time_text(scale_.time_at(scene_.pointer->x())));
  const auto cursor = cursor_flag();
  if (cursor && scale_.x_of(*scene_.cursor_ps) == scene_.pointer->x()) return std::nullopt;
  if (!cursor || !cursor->intersects(flag)) return flag;
  const bool is_right = flag.center().x() >= cursor->center().x();
  const bool has_room = cursor->right() + 1 + flag.width() <= geometry_.ruler.right() + 1;
  if (is_right && has_room) {
    flag.moveLeft(cursor->right() + 1);
  } else {
    flag.moveRight(cursor->left() - 1);
  }
  return flag;
}

/// The length of the selected range, over its middle.
std::optional<std::pair<QRectF, QString>> TimelinePainter::area_flag() const {
  if (!scene_.area) return std::nullopt;
  const double left = std::max<double>(scale_.x_of(scene_.area->from_ps), geometry_.plot.left());
  const double right = std::min<double>(scale_.x_of(scene_.area->to_ps), geometry_.plot.right());
  if (right < left) return std::nullopt;
  const QString text = time_text(static_cast<double>(scene_.area->to_ps) -
                                 static_cast<double>(scene_.area->from_ps));
  return std::pair(time_flag((left + right) / 2, text), text);
}

/// What covers the labels of the ruler.
std::vector<QRectF> TimelinePainter::ruler_flags() const {
  std::vector<QRectF> flags;
  if (const auto flag = area_flag()) flags.push_back(flag->first);
  for (const TimelineMark& mark : scene_.marks) flags.push_back(mark_flag(mark));
  if (const auto flag = pointer_flag()) flags.push_back(*flag);
  if (const auto flag = cursor_flag()) flags.push_back(*flag);
  return flags;
}

void TimelinePainter::paint_marks(QPainter& painter) {
  for (const TimelineMark& mark : scene_.marks) {
    const QRectF flag = mark_flag(mark);
    if (flag.right() < geometry_.plot.left() || flag.left() > geometry_.plot.right() + 1) continue;
    painter.setPen(QPen(colors_.mark, 1));
    const double x = std::floor(scale_.x_of(mark.at_ps)) + 0.5;
    painter.drawLine(QPointF(x, geometry_.ruler.top() + 2), QPointF(x, geometry_.plot.bottom()));
    painter.fillRect(flag, colors_.mark);
    painter.setPen(readable_on(colors_.mark));
    painter.drawText(flag, Qt::AlignCenter, mark.label);
  }
}

void TimelinePainter::paint_cursor(QPainter& painter) {
  if (const auto flag = area_flag()) {
    painter.fillRect(flag->first, blended(colors_.panel, colors_.accent, 0.3));
    painter.setPen(colors_.text);
    painter.drawText(flag->first, Qt::AlignCenter, flag->second);
  }
  const auto draw = [&](double at, double at_ps, const QRectF& flag, const QColor& color,
                        Qt::PenStyle style) {
    const double x = std::floor(at) + 0.5;
    painter.setPen(QPen(color, 1, style));
    painter.drawLine(QPointF(x, geometry_.plot.top()), QPointF(x, geometry_.plot.bottom()));
    painter.fillRect(flag, color);
    painter.setPen(readable_on(color));
    painter.drawText(flag, Qt::AlignCenter, time_text(at_ps));
  };
  if (const auto flag = pointer_flag()) {
    draw(scene_.pointer->x(), scale_.time_at(scene_.pointer->x()), *flag, colors_.faint,
         Qt::DotLine);
  }
  if (const auto flag = cursor_flag()) {
    draw(scale_.x_of(*scene_.cursor_ps), static_cast<double>(*scene_.cursor_ps), *flag,
         colors_.accent, Qt::SolidLine);
  }
}

}  // namespace ring::gui
