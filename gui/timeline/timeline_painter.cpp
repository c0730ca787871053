#include "gui/timeline/timeline_painter.h"

#include <QPainter>
#include <algorithm>
#include <cmath>

#include "core/time_ticks.h"

namespace ring::gui {
namespace {

constexpr int kPad = 8;
/// Ticks stand about so many widths of a digit apart.
constexpr int kTickDigits = 14;

QString text_of(std::string_view text) {
  return QString::fromUtf8(text.data(), static_cast<qsizetype>(text.size()));
}

struct LegendEntry {
  QString label;
  QColor color;
  enum Look { kSolid, kWait, kHatched, kFrame } look = kSolid;
};

std::vector<LegendEntry> legend_of(const TimelineScene& scene, const ThemeColors& colors) {
  std::vector<LegendEntry> entries;
  uint32_t classes = 0;
  bool has_path = false;
  int shown = 0;
  for (const auto origin : {TimelineOrigin::kMeasured, TimelineOrigin::kPredicted}) {
    const ModelRun* run = scene.model->run(origin);
    if (run == nullptr || !shows(scene.layout->mode(), origin)) continue;
    classes |= run->classes;
    has_path = has_path || run->has_critical_path;
    ++shown;
  }
  for (BarClass c = 0; c < kWaitClass; ++c) {
    const auto kind = static_cast<OpKind>(c);
    if ((classes >> c & 1U) != 0) entries.push_back({text_of(name(kind)), op_color(kind)});
  }
  if ((classes >> kWaitClass & 1U) != 0) {
    entries.push_back({QStringLiteral("wait"), wait_color(), LegendEntry::kWait});
  }
  if (has_path) {
    entries.push_back({QStringLiteral("critical path"), critical_color(), LegendEntry::kFrame});
  }
  if (shown > 1) entries.push_back({QStringLiteral("measured"), colors.faint});
  if (shows(scene.layout->mode(), TimelineOrigin::kPredicted) && scene.model->predicted) {
    entries.push_back({QStringLiteral("predicted"), colors.faint, LegendEntry::kHatched});
  }
  return entries;
}

void draw_swatch(QPainter& painter, const QRectF& box, const LegendEntry& entry,
                 const QColor& ground) {
  switch (entry.look) {
    case LegendEntry::kSolid:
      painter.fillRect(box, entry.color);
      return;
    case LegendEntry::kWait:
      painter.fillRect(box.adjusted(0, box.height() * kWaitInset, 0, -box.height() * kWaitInset),
                       entry.color);
      return;
    case LegendEntry::kHatched: {
      painter.fillRect(box, blended(ground, entry.color, 0.3));
      painter.save();
      painter.setClipRect(box, Qt::IntersectClip);
      painter.setPen(QPen(entry.color, 2));
      for (double x = box.left(); x < box.right() + box.height(); x += 5) {
        painter.drawLine(QPointF(x, box.top()), QPointF(x - box.height(), box.bottom()));
      }
      painter.restore();
      return;
    }
    case LegendEntry::kFrame:
      painter.setPen(QPen(entry.color, 2));
      painter.setBrush(Qt::NoBrush);
      painter.drawRect(box.adjusted(1, 1, -1, -1));
      return;
  }
}

}  // namespace

int gutter_width(const TimelineLayout* layout, const QFont& font) {
  const QFontMetricsF metrics(font);
  double names = metrics.horizontalAdvance(QStringLiteral("receive"));
  int ranks = 1;
  if (layout != nullptr) {
    // Labels repeat from rank to rank; the first and the last ranks have the longest ones.
    const auto& rows = layout->rows();
    const size_t step = std::max<size_t>(1, rows.size() / 64);
    for (size_t i = 0; i < rows.size(); i += step) {
      double width = metrics.horizontalAdvance(rows[i].label);
      if (!rows[i].detail.isEmpty()) {
        width = std::max(width, metrics.horizontalAdvance(rows[i].detail));
      }
      names = std::max(names, width);
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
      geometry_(size, gutter_width(scene.layout, style.font),
                scene.layout != nullptr ? scene.layout->metrics().bar : RowMetrics().bar),
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
  paint_rows(painter);
  paint_header(painter);
  paint_minimap(painter);
  paint_ruler(painter);
  paint_gutter(painter);
  paint_overlay(painter);
}

void TimelinePainter::paint_nothing(QPainter& painter) {
  painter.fillRect(QRect(QPoint(0, 0), size_), colors_.background);
  painter.setPen(colors_.faint);
  const QString text = scene_.model == nullptr
                           ? QStringLiteral("No run to show")
                           : QStringLiteral("This run has no ops in what is shown");
  painter.drawText(QRect(QPoint(0, 0), size_), Qt::AlignCenter, text);
}

void TimelinePainter::paint_header(QPainter& painter) {
  const QRect area = geometry_.header;
  painter.fillRect(QRect(0, 0, size_.width(), geometry_.ruler.top()), colors_.panel);
  QString text;
  const auto add = [&](const ModelRun& run, const QString& which) {
    if (!text.isEmpty()) text += QStringLiteral("   ");
    text += which + QLatin1Char(' ') + text_of(format_time(run.makespan_ps));
    if (!run.timeline().is_complete) text += QStringLiteral(" (incomplete)");
  };
  const TimelineModel& model = *scene_.model;
  if (model.measured) add(*model.measured, QStringLiteral("measured"));
  if (model.predicted) add(*model.predicted, QStringLiteral("predicted"));
  if (model.measured && model.predicted && model.pairs.mismatch().empty() &&
      model.measured->makespan_ps > 0) {
    const double off = static_cast<double>(model.predicted->makespan_ps) /
                           static_cast<double>(model.measured->makespan_ps) -
                       1;
    text += QStringLiteral("   prediction off by %1%2 %")
                .arg(off < 0 ? QStringLiteral("−") : QStringLiteral("+"))
                .arg(100 * std::abs(off), 0, 'f', 1);
  }
  painter.setPen(colors_.text);
  const double width = font_.horizontalAdvance(text);
  const QRectF box(kPad, area.top(), area.width() - 2.0 * kPad, area.height());
  painter.drawText(box, Qt::AlignVCenter | Qt::AlignLeft,
                   font_.elidedText(text, Qt::ElideRight, box.width()));
  paint_legend(painter, kPad + width + 3.0 * kPad);
}

void TimelinePainter::paint_legend(QPainter& painter, double left) {
  const QRect area = geometry_.header;
  const std::vector<LegendEntry> entries = legend_of(scene_, colors_);
  const double swatch = std::max(10.0, font_.ascent() - 1);
  double width = 0;
  for (const LegendEntry& entry : entries) {
    width += swatch + 5 + font_.horizontalAdvance(entry.label) + 14;
  }
  double x = std::max(left, area.right() - kPad - width + 14);
  for (const LegendEntry& entry : entries) {
    const double text_width = font_.horizontalAdvance(entry.label);
    if (x + swatch + 5 + text_width > area.right() - 2) return;
    const double height = std::min(swatch, 12.0);
    draw_swatch(painter, QRectF(x, area.center().y() - height / 2 + 0.5, swatch, height), entry,
                colors_.panel);
    painter.setPen(colors_.faint);
    painter.drawText(QRectF(x + swatch + 5, area.top(), text_width + 2, area.height()),
                     Qt::AlignVCenter | Qt::AlignLeft, entry.label);
    x += swatch + 5 + text_width + 14;
  }
}

/// The compute lanes of all ranks over the whole time, a few lines a rank.
void TimelinePainter::fill_minimap() {
  const QRect area = geometry_.minimap;
  const double ratio = style_.pixel_ratio;
  const int width = columns_;
  const int height = std::max(1, static_cast<int>(std::lround(area.height() * ratio)));
  const TimelineModel& model = *scene_.model;
  const QString key = QStringLiteral("%1 %2 %3 %4 %5")
                          .arg(reinterpret_cast<quintptr>(&model))
                          .arg(width)
                          .arg(height)
                          .arg(static_cast<int>(style_.theme))
                          .arg(static_cast<int>(scene_.layout->mode()));
  if (key == cache_.minimap_key) return;
  cache_.minimap_key = key;
  cache_.minimap = QImage(width, height, QImage::Format_RGB32);
  cache_.minimap.fill(colors_.background);
  const BarColors bar_colors(colors_, colors_.background);
  std::vector<const LayoutRow*> rows;  // The first bars of each rank.
  for (const LayoutGroup& group : scene_.layout->groups()) {
    rows.push_back(&scene_.layout->rows()[static_cast<size_t>(group.first_row)]);
  }
  const auto count = static_cast<int>(rows.size());
  const int lanes = std::min(count, std::max(1, height / 2));
  for (int lane = 0; lane < lanes; ++lane) {
    const LayoutRow& row = *rows[static_cast<size_t>(int64_t{lane} * count / lanes)];
    const bool is_measured = row.measured >= 0;
    const ModelRun& run = is_measured ? *model.measured : *model.predicted;
    const int number = is_measured ? row.measured : row.predicted;
    if (row.kind != RowKind::kBars || number < 0) continue;
    cache_.runs.clear();
    run.rows[static_cast<size_t>(number)].bars.fold(
        model.begin_ps, std::max(model.end_ps, model.begin_ps + 1), width, cache_.runs);
    const int top = lane * height / lanes;
    const int gap = height / lanes >= 4 ? 1 : 0;
    const int bottom = std::max(top + 1, (lane + 1) * height / lanes - gap);
    for (const PixelRun& pixels : cache_.runs) {
      if (pixels.of_class == kWaitClass) continue;
      const int share = std::max<int>(pixels.fill, kFaintest) * 256 / 255;
      const QRgb color = mixed_rgb(bar_colors.background, bar_colors.solid[pixels.of_class], share);
      for (int y = top; y < bottom; ++y) {
        auto* const line = reinterpret_cast<QRgb*>(cache_.minimap.scanLine(y));
        std::fill(line + pixels.begin, line + pixels.end, color);
      }
    }
  }
}

void TimelinePainter::paint_minimap(QPainter& painter) {
  fill_minimap();
  const QRect area = geometry_.minimap;
  painter.drawImage(QRectF(area), cache_.minimap, QRectF(cache_.minimap.rect()));
  const TimelineModel& model = *scene_.model;
  const TimeScale whole(model.begin_ps, std::max(model.end_ps, model.begin_ps + 1), area.left(),
                        area.width());
  const double left = std::clamp<double>(whole.x_of(scene_.from_ps), area.left(), area.right());
  const double right = std::clamp<double>(whole.x_of(scene_.to_ps), area.left(), area.right() + 1);
  QColor shade = colors_.panel;
  shade.setAlphaF(0.72F);
  painter.fillRect(QRectF(area.left(), area.top(), left - area.left(), area.height()), shade);
  painter.fillRect(QRectF(right, area.top(), area.right() + 1 - right, area.height()), shade);
  painter.setPen(QPen(colors_.accent, 1));
  painter.setBrush(Qt::NoBrush);
  painter.drawRect(QRectF(std::floor(left) + 0.5, area.top() + 0.5,
                          std::max(2.0, std::floor(right - left) - 1), area.height() - 1));
  painter.setPen(colors_.faint);
  painter.drawText(QRectF(kPad, area.top(), area.left() - 2.0 * kPad, area.height()),
                   Qt::AlignVCenter | Qt::AlignLeft, QStringLiteral("whole run"));
}

void TimelinePainter::paint_ruler(QPainter& painter) {
  const QRect area = geometry_.ruler;
  const double digit = std::max(6.0, font_.horizontalAdvance(QLatin1Char('0')));
  const int wanted = std::max(2, static_cast<int>(area.width() / (kTickDigits * digit)));
  const TimeTicks ticks = time_ticks(scene_.from_ps, scene_.to_ps, wanted);
  painter.setPen(colors_.faint);
  QString unit = QStringLiteral("time in %1").arg(text_of(ticks.unit));
  if (ticks.base_ps != 0) {
    unit = QStringLiteral("%1 + … %2").arg(text_of(exact_time(ticks.base_ps)), text_of(ticks.unit));
  }
  const QRectF unit_box(kPad, area.top(), area.left() - 2.0 * kPad, area.height());
  painter.drawText(unit_box, Qt::AlignVCenter | Qt::AlignRight,
                   font_.elidedText(unit, Qt::ElideMiddle, unit_box.width()));
  painter.setPen(colors_.separator);
  painter.drawLine(QPointF(0, area.bottom() + 0.5), QPointF(size_.width(), area.bottom() + 0.5));
  for (const TimeTick& tick : ticks.ticks) {
    const double x = std::floor(scale_.x_of(tick.at_ps)) + 0.5;
    painter.setPen(colors_.separator);
    painter.drawLine(QPointF(x, area.bottom() - 4), QPointF(x, area.bottom()));
    const QString label = text_of(tick.label);
    const double width = font_.horizontalAdvance(label) + 2;
    const double left = std::clamp(x - width / 2, static_cast<double>(area.left()),
                                   std::max<double>(area.left(), area.right() - width));
    painter.setPen(colors_.faint);
    painter.drawText(QRectF(left, area.top(), width, area.height() - 5), Qt::AlignCenter, label);
  }
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
  painter.drawLine(QPointF(area.right() + 0.5, geometry_.ruler.top()),
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
