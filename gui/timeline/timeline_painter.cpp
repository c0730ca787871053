#include "gui/timeline/timeline_painter.h"

#include <QPainter>
#include <algorithm>
#include <cmath>

namespace ring::gui {
namespace {

constexpr int kPad = 8;

}  // namespace

int gutter_width(const TimelineLayout* layout, const QFont& font) {
  const QFontMetricsF metrics(font);
  double names = metrics.horizontalAdvance(QStringLiteral("receive"));
  int ranks = 1;
  if (layout != nullptr) {
    // Of very many ranks the first and the last ones have the longest names.
    constexpr size_t kMostRows = 1000;
    const auto& rows = layout->rows();
    for (size_t i = 0; i < rows.size(); ++i) {
      if (i == kMostRows) i = std::max(i, rows.size() - std::min(rows.size(), kMostRows));
      names = std::max({names, metrics.horizontalAdvance(rows[i].label),
                        metrics.horizontalAdvance(rows[i].detail)});
    }
    ranks = layout->groups().empty() ? 1 : layout->groups().back().rank;
  }
  QFont bold = font;
  bold.setBold(true);
  const double rank = QFontMetricsF(bold).horizontalAdvance(QStringLiteral("rank %1").arg(ranks));
  return static_cast<int>(std::ceil(rank + names)) + 3 * kPad + kPad;
}

TimelinePainter::TimelinePainter(const TimelineScene& scene, QSize size, const PaintStyle& style,
                                 PaintCache& cache)
    : scene_(scene),
      size_(size),
      style_(style),
      cache_(cache),
      colors_(colors_of(style.theme)),
      font_(style.font),
      geometry_(size, scene.gutter,
                scene.layout != nullptr ? scene.layout->metrics().bar : RowMetrics().bar,
                scene.header_lines),
      scale_(scene.from_ps, scene.to_ps, geometry_.plot.left(), geometry_.plot.width()),
      columns_(
          std::max(1, static_cast<int>(std::lround(geometry_.plot.width() * style.pixel_ratio)))),
      bar_colors_{BarColors(colors_, colors_.background), BarColors(colors_, colors_.band)} {
  if (scene.model == nullptr || style.is_vector) return;
  ground_ = {ground_line(colors_.background), ground_line(colors_.band)};
  for (size_t i = 0; i < kWaitClass; ++i) {
    label_colors_[i] = readable_on(op_color(static_cast<OpKind>(i))).rgb();
  }
}

void TimelinePainter::paint(QPainter& painter) {
  painter.setFont(style_.font);
  painter.setRenderHint(QPainter::Antialiasing, style_.is_vector);
  if (scene_.model == nullptr || scene_.layout == nullptr || scene_.layout->rows().empty()) {
    paint_nothing(painter);
    return;
  }
  // Files may know no clipping, so what could stick out of the plot comes before its surroundings.
  paint_rows(painter);
  paint_plot_overlay(painter);
  const QString key = part_key();
  paint_kept(painter, cache_.header, geometry_.header, key, &TimelinePainter::paint_header);
  paint_minimap(painter);
  paint_ruler(painter);
  paint_kept(painter, cache_.gutter, geometry_.gutter,
             QStringLiteral("%1 %2").arg(key).arg(scene_.scroll_y), &TimelinePainter::paint_gutter);
  paint_flags(painter);
}

/// What all parts depend on.
QString TimelinePainter::part_key() const {
  return QStringLiteral("%1 %2 %3 %4x%5 %6 %7 %8")
      .arg(scene_.layout->version())
      .arg(static_cast<int>(scene_.layout->mode()))
      .arg(static_cast<int>(style_.theme))
      .arg(size_.width())
      .arg(size_.height())
      .arg(style_.pixel_ratio)
      .arg(style_.font.key())
      .arg(scene_.header_lines);
}

/// Text takes long to draw, so parts of text are kept as pictures.
void TimelinePainter::paint_kept(QPainter& painter, PaintCache::Part& part, const QRect& area,
                                 const QString& key, void (TimelinePainter::*draw)(QPainter&)) {
  if (style_.is_vector) {
    (this->*draw)(painter);
    return;
  }
  const double ratio = style_.pixel_ratio;
  const int left = static_cast<int>(std::lround(area.left() * ratio));
  const int top = static_cast<int>(std::lround(area.top() * ratio));
  if (part.key != key) {
    part.key = key;
    part.picture = QImage(static_cast<int>(std::lround((area.right() + 1) * ratio)) - left,
                          static_cast<int>(std::lround((area.bottom() + 1) * ratio)) - top,
                          QImage::Format_RGB32);
    QPainter part_painter(&part.picture);
    part_painter.translate(-left, -top);
    part_painter.scale(ratio, ratio);
    part_painter.setFont(style_.font);
    (this->*draw)(part_painter);
  }
  painter.save();
  painter.scale(1 / ratio, 1 / ratio);
  painter.drawImage(QPointF(left, top), part.picture);
  painter.restore();
}

void TimelinePainter::paint_nothing(QPainter& painter) {
  painter.fillRect(QRect(QPoint(0, 0), size_), colors_.background);
  painter.setPen(colors_.faint);
  const QString text = scene_.model == nullptr
                           ? QStringLiteral("No run to show")
                           : QStringLiteral("This run has no ops in what is shown");
  painter.drawText(QRect(QPoint(0, 0), size_), Qt::AlignCenter, text);
}

void TimelinePainter::paint_gutter(QPainter& painter) {
  const QRect area = geometry_.gutter;
  painter.save();
  painter.setClipRect(area, Qt::IntersectClip);
  painter.fillRect(area, colors_.panel);
  QFont bold = style_.font;
  bold.setBold(true);
  const TimelineLayout& layout = *scene_.layout;
  const int top = scene_.scroll_y;
  const auto [first_group, last_group] = layout.groups_between(top, top + area.height());
  for (int g = first_group; g < last_group; ++g) {
    const LayoutGroup& group = layout.groups()[static_cast<size_t>(g)];
    const double y = area.top() + group.y - scene_.scroll_y;
    painter.setPen(colors_.separator);
    painter.drawLine(QPointF(0, y + 0.5), QPointF(area.right(), y + 0.5));
    painter.setFont(bold);
    painter.setPen(colors_.text);
    // The name stays in sight while any row of the rank is.
    const double line = layout.metrics().bar;
    const double at =
        std::clamp<double>(area.top() + layout.metrics().group_gap, y + layout.metrics().group_gap,
                           y + group.height - layout.metrics().group_gap - line);
    painter.drawText(QRectF(kPad, at, area.width(), line), Qt::AlignVCenter | Qt::AlignLeft,
                     QStringLiteral("rank %1").arg(group.rank));
  }
  painter.setFont(style_.font);
  const auto [first, last] = layout.rows_between(top, top + area.height());
  for (int i = first; i < last; ++i) {
    const LayoutRow& row = layout.rows()[static_cast<size_t>(i)];
    const QRectF box(0, top_of(row), area.right() - kPad, row.height);
    painter.setPen(colors_.text);
    if (row.detail.isEmpty()) {
      painter.drawText(box, Qt::AlignVCenter | Qt::AlignRight, row.label);
      continue;
    }
    const double half = row.height / 2.0;
    painter.drawText(QRectF(box.left(), box.top() - 2, box.width(), half + 2),
                     Qt::AlignVCenter | Qt::AlignRight, row.label);
    painter.setPen(colors_.faint);
    painter.drawText(QRectF(box.left(), box.top() + half, box.width(), half + 2),
                     Qt::AlignVCenter | Qt::AlignRight, row.detail);
  }
  painter.setPen(colors_.separator);
  painter.drawLine(QPointF(area.right() + 0.5, area.top()),
                   QPointF(area.right() + 0.5, area.bottom()));
  painter.restore();
}

const StepCurve* TimelinePainter::curve_of(const LayoutRow& row, TimelineOrigin origin) const {
  const bool is_measured = origin == TimelineOrigin::kMeasured;
  const int number = is_measured ? row.measured : row.predicted;
  const ModelRun* run = scene_.model->run(origin);
  if (number < 0 || run == nullptr) return nullptr;
  const auto at = static_cast<size_t>(number);
  switch (row.kind) {
    case RowKind::kBars:
      return nullptr;
    case RowKind::kDifference:
      return is_measured ? &scene_.model->drift[at] : nullptr;
    case RowKind::kLink:
      return &run->links[at].bytes_per_s;
    case RowKind::kMemory:
      return &run->memory[at].bytes;
  }
  return nullptr;
}

double TimelinePainter::curve_scale(const LayoutRow& row) const {
  switch (row.kind) {
    case RowKind::kBars:
      return 1;
    case RowKind::kDifference:
      return std::max(1.0, scene_.model->peak_drift_ps);
    case RowKind::kLink:
      return std::max(1.0, scene_.model->peak_bytes_per_s);
    case RowKind::kMemory:
      return std::max(1.0, scene_.model->peak_memory_bytes);
  }
  return 1;
}

QString bar_label(const Slice& slice) {
  switch (slice.kind) {
    case OpKind::kAttend:
    case OpKind::kBackward:
      return slice.kv_shard >= 0 ? QStringLiteral("KV %1").arg(slice.kv_shard) : QString();
    case OpKind::kSend:
      return slice.peer >= 0 ? QStringLiteral("to %1").arg(slice.peer) : QString();
    case OpKind::kReceive:
      return slice.peer >= 0 ? QStringLiteral("from %1").arg(slice.peer) : QString();
    case OpKind::kMerge:
    case OpKind::kCopy:
    case OpKind::kFinalize:
    case OpKind::kCompute:
    case OpKind::kDelta:
    case OpKind::kAdd:
      return {};
  }
  return {};
}

}  // namespace ring::gui
