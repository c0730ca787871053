// What stands above the rows: header with legend, the whole run, the ruler.
#include <QPainter>
#include <QPainterPath>
#include <algorithm>
#include <cmath>

#include "core/time_ticks.h"
#include "gui/paint/hatch.h"
#include "gui/paint/text.h"
#include "gui/timeline/timeline_header.h"
#include "gui/timeline/timeline_painter.h"

namespace ring::gui {
namespace {

constexpr int kPad = static_cast<int>(kHeaderPad);
/// Ticks stand about so many widths of a digit apart.
constexpr int kTickDigits = 14;

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
      QPainterPath strokes;
      add_hatch(box, 5, strokes);
      painter.strokePath(strokes, QPen(entry.color, 2));
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

void TimelinePainter::paint_header(QPainter& painter) {
  const QRect area = geometry_.header;
  painter.fillRect(area, colors_.panel);
  const QString text = header_text(*scene_.model);
  painter.setPen(colors_.text);
  const QRectF box(kPad, area.top(), area.width() - 2.0 * kPad, geometry_.header_line);
  painter.drawText(box, Qt::AlignVCenter | Qt::AlignLeft,
                   font_.elidedText(text, Qt::ElideRight, box.width()));
  paint_legend(painter);
}

/// Right of the text, or below it in lines from the left.
void TimelinePainter::paint_legend(QPainter& painter) {
  const QRect area = geometry_.header;
  const std::vector<LegendEntry> entries = legend_of(*scene_.model, scene_.layout->mode(), colors_);
  const double swatch = swatch_width(font_), height = std::min(swatch, 12.0);
  const bool is_below = scene_.header_lines > 1;
  double width = -kEntryGap;
  for (const LegendEntry& entry : entries) width += entry_width(entry, font_) + kEntryGap;
  double x = is_below ? kPad : std::max<double>(kPad, area.right() - kPad - width);
  const double line = font_.height() + kLegendGap;
  double top = is_below ? area.top() + geometry_.header_line - kLegendGap / 2.0 : area.top();
  const double tall = is_below ? line : geometry_.header_line;
  for (const LegendEntry& entry : entries) {
    const double wide = entry_width(entry, font_);
    if (is_below && x > kPad && x + wide > area.width() - kPad) {
      x = kPad;
      top += line;
    }
    draw_swatch(painter, QRectF(x, std::floor(top + tall / 2) - height / 2 + 0.5, swatch, height),
                entry, colors_.panel);
    painter.setPen(colors_.faint);
    painter.drawText(QRectF(x + swatch + kSwatchGap, top, wide, tall),
                     Qt::AlignVCenter | Qt::AlignLeft, entry.label);
    x += wide + kEntryGap;
  }
}

/// The compute lanes of all ranks over the whole time, a few lines a rank.
void TimelinePainter::fill_minimap() {
  const QRect area = geometry_.minimap;
  const double ratio = style_.pixel_ratio;
  const int width = columns_;
  const int height = std::max(1, static_cast<int>(std::lround(area.height() * ratio)));
  const TimelineModel& model = *scene_.model;
  const QString key = part_key();
  if (key == cache_.minimap.key) return;
  cache_.minimap.key = key;
  QImage& picture = cache_.minimap.picture;
  picture = QImage(width, height, QImage::Format_RGB32);
  picture.fill(colors_.background);
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
        auto* const line = reinterpret_cast<QRgb*>(picture.scanLine(y));
        std::fill(line + pixels.begin, line + pixels.end, color);
      }
    }
  }
}

void TimelinePainter::paint_minimap(QPainter& painter) {
  fill_minimap();
  const QRect area = geometry_.minimap;
  const double ratio = style_.pixel_ratio;
  painter.fillRect(QRect(0, geometry_.header.bottom() + 1, size_.width(),
                         geometry_.plot.top() - geometry_.header.bottom() - 1),
                   colors_.panel);
  painter.save();
  painter.scale(1 / ratio, 1 / ratio);
  painter.drawImage(QPointF(std::round(area.left() * ratio), std::round(area.top() * ratio)),
                    cache_.minimap.picture);
  painter.restore();
  const TimelineModel& model = *scene_.model;
  const TimeScale whole(model.begin_ps, std::max(model.end_ps, model.begin_ps + 1), area.left(),
                        area.width());
  const double left = std::clamp<double>(whole.x_of(scene_.from_ps), area.left(), area.right());
  const double right = std::clamp<double>(whole.x_of(scene_.to_ps), area.left(), area.right() + 1);
  QColor shade = colors_.panel;
  shade.setAlphaF(0.6F);
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
  QString unit = QStringLiteral("time in %1").arg(qt(ticks.unit));
  if (ticks.base_ps != 0) {
    unit = QStringLiteral("%1 + … %2")
               .arg(qt(time_label(ticks.base_ps, static_cast<double>(ticks.step_ps) * 100)),
                    qt(ticks.unit));
  }
  const QRectF unit_box(kPad, area.top(), area.left() - 2.0 * kPad, area.height());
  painter.drawText(unit_box, Qt::AlignVCenter | Qt::AlignRight,
                   font_.elidedText(unit, Qt::ElideMiddle, unit_box.width()));
  painter.setPen(colors_.separator);
  painter.drawLine(QPointF(0, area.bottom() + 0.5), QPointF(size_.width(), area.bottom() + 0.5));
  const std::vector<QRectF> flags = ruler_flags();
  for (const TimeTick& tick : ticks.ticks) {
    const double x = std::floor(scale_.x_of(tick.at_ps)) + 0.5;
    painter.setPen(colors_.separator);
    painter.drawLine(QPointF(x, area.bottom() - 4), QPointF(x, area.bottom()));
    const QString label = qt(tick.label);
    const double width = font_.horizontalAdvance(label) + 2;
    const bool is_covered = std::any_of(flags.begin(), flags.end(), [&](const QRectF& flag) {
      return flag.left() < x + width / 2 + 2 && flag.right() > x - width / 2 - 2;
    });
    if (is_covered) continue;
    const double left = std::clamp(x - width / 2, static_cast<double>(area.left()),
                                   std::max<double>(area.left(), area.right() - width));
    painter.setPen(colors_.faint);
    painter.drawText(QRectF(left, area.top(), width, area.height() - 5), Qt::AlignCenter, label);
  }
}

}  // namespace ring::gui
