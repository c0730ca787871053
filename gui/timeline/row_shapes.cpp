// The rows of the plot as shapes, for files that can be enlarged without end.
#include <QPainter>
#include <QPainterPath>
#include <algorithm>
#include <cmath>
#include <map>

#include "core/time_ticks.h"
#include "gui/paint/hatch.h"
#include "gui/timeline/timeline_painter.h"

namespace ring::gui {
namespace {

/// Columns per unit: shapes narrower than this are drawn together.
constexpr int kShapeColumns = 2;
constexpr double kHatchStep = 5;
constexpr double kDimmed = 0.8;

struct ClassShapes {
  QPainterPath fill, hatch, edges;
};

}  // namespace

void TimelinePainter::draw_row_shapes(QPainter& painter, const LayoutRow& row, bool is_banded) {
  const TimelineLayout& layout = *scene_.layout;
  const int gap = layout.metrics().group_gap;
  const QColor background = is_banded ? colors_.band : colors_.background;
  const QRect plot = geometry_.plot;
  // Backgrounds and grid lines of rows that follow each other overlap only in their gaps.
  const double top = std::max<double>(plot.top(), top_of(row) - gap);
  const double bottom = std::min<double>(plot.bottom() + 1, top_of(row) + row.height + gap);
  if (bottom <= top) return;
  painter.setRenderHint(QPainter::Antialiasing, false);
  painter.fillRect(QRectF(plot.left(), top, plot.width(), bottom - top), background);
  const double digit = std::max(6.0, font_.horizontalAdvance(QLatin1Char('0')));
  const int wanted = std::max(2, static_cast<int>(plot.width() / (14 * digit)));
  painter.setPen(QPen(colors_.grid, 1));
  for (const TimeTick& tick : time_ticks(scene_.from_ps, scene_.to_ps, wanted).ticks) {
    const double x = std::floor(scale_.x_of(tick.at_ps)) + 0.5;
    painter.drawLine(QPointF(x, top), QPointF(x, bottom));
  }
  painter.setRenderHint(QPainter::Antialiasing, true);
  if (row.kind != RowKind::kBars) {
    draw_curve_shapes(painter, row);
    return;
  }
  for (const auto origin : {TimelineOrigin::kMeasured, TimelineOrigin::kPredicted}) {
    const int number = origin == TimelineOrigin::kMeasured ? row.measured : row.predicted;
    if (number >= 0) draw_line_shapes(painter, row, origin, background);
  }
}

void TimelinePainter::draw_line_shapes(QPainter& painter, const LayoutRow& row,
                                       TimelineOrigin origin, const QColor& background) {
  const bool is_measured = origin == TimelineOrigin::kMeasured;
  const int number = is_measured ? row.measured : row.predicted;
  const ModelRun& run = *scene_.model->run(origin);
  const ModelRow& bars = run.rows[static_cast<size_t>(number)];
  const double y = geometry_.plot.top() - scene_.scroll_y + scene_.layout->line_y(row, origin);
  const double height = scene_.layout->line_height(row, origin);
  std::vector<PixelRun>& runs = cache_.runs;
  const auto fold = [&](const RowLevels& levels) {
    runs.clear();
    levels.fold(scene_.from_ps, scene_.to_ps, geometry_.plot.width() * kShapeColumns, runs);
  };
  const auto box_of = [&](const PixelRun& pixels) {
    const double inset = pixels.of_class == kWaitClass ? height * kWaitInset : 0;
    return QRectF(geometry_.plot.left() + static_cast<double>(pixels.begin) / kShapeColumns,
                  y + inset, static_cast<double>(pixels.end - pixels.begin) / kShapeColumns,
                  height - 2 * inset);
  };
  const auto draw = [&](double dim) {
    std::map<std::pair<int, int>, ClassShapes> shapes;  // By class and fill.
    for (const PixelRun& pixels : runs) {
      ClassShapes& of = shapes[{pixels.of_class, std::max<int>(pixels.fill, kFaintest)}];
      const QRectF box = box_of(pixels);
      of.fill.addRect(box);
      if (!is_measured) add_hatch(box, kHatchStep, of.hatch);
      if (!pixels.is_folded && box.width() >= kEdgeFrom) {
        of.edges.addRect(box.adjusted(0.5, 0.5, -0.5, -0.5));
      }
    }
    for (const auto& [look, of] : shapes) {
      const auto [of_class, fill] = look;
      const QColor color =
          of_class == kWaitClass ? wait_color() : op_color(static_cast<OpKind>(of_class));
      const double share = fill / 255.0 * (1 - dim);
      const QColor ink = blended(background, color, share);
      painter.fillPath(of.fill, is_measured ? ink : blended(background, color, 0.28 * share));
      painter.strokePath(of.hatch, QPen(ink, 1.4));
      const QColor dark = blended(color, colors_.has_dark_edges ? Qt::black : Qt::white, 0.3);
      painter.strokePath(of.edges, QPen(is_measured ? blended(background, dark, share) : ink, 1));
    }
  };
  fold(bars.bars);
  draw(scene_.hits != nullptr ? kDimmed : 0);
  if (scene_.hits != nullptr) {
    fold(scene_.hits->of(origin, number));
    draw(0);
  }
  const bool is_labelled =
      is_measured || row.measured < 0 || scene_.layout->mode() != LayoutMode::kOverlaid;
  QFont small = style_.font;
  small.setPointSizeF(small.pointSizeF() > 0 ? small.pointSizeF() * kLabelSize : 8);
  painter.setFont(small);
  const QFontMetricsF metrics(small);
  for (const PixelRun& pixels : runs) {
    if (!is_labelled || pixels.is_folded || pixels.of_class == kWaitClass) continue;
    const QString label = bar_label(run.slice(pixels.slice));
    QRectF box = box_of(pixels);
    box.setHeight(std::min<double>(box.height(), scene_.layout->free_height(row, origin)));
    const double width = metrics.horizontalAdvance(label);
    if (label.isEmpty() || width + 8 > box.width()) continue;
    const QColor color = op_color(static_cast<OpKind>(pixels.of_class));
    if (!is_measured) {
      painter.fillRect(
          QRectF(box.center().x() - width / 2 - 2, box.top() + 1, width + 4, box.height() - 2),
          blended(background, color, 0.28));
    }
    painter.setPen(is_measured ? readable_on(color) : colors_.text);
    painter.drawText(box, Qt::AlignCenter, label);
  }
  painter.setFont(style_.font);
  if (bars.critical.bars().empty() || scene_.hits != nullptr) return;
  fold(bars.critical);
  QPainterPath frames, lines;
  for (const PixelRun& pixels : runs) {
    const QRectF box = box_of(pixels);
    if (!pixels.is_folded && box.width() >= 6) {
      frames.addRect(box.adjusted(1, 1, -1, -1));
    } else {
      lines.addRect(QRectF(box.left(), y, box.width(), 2));
      lines.addRect(QRectF(box.left(), y + height - 2, box.width(), 2));
    }
  }
  painter.strokePath(frames, QPen(critical_color(), 2));
  painter.fillPath(lines, critical_color());
}

void TimelinePainter::draw_curve_shapes(QPainter& painter, const LayoutRow& row) {
  const bool is_signed = row.kind == RowKind::kDifference;
  const double top = top_of(row), height = row.height;
  const double zero = is_signed ? top + height / 2 : top + height;
  const double per_unit = (is_signed ? height / 2 : height) / curve_scale(row);
  const double left = geometry_.plot.left();
  painter.setPen(QPen(colors_.separator, 1));
  painter.drawLine(QPointF(left, zero), QPointF(geometry_.plot.right(), zero));
  cache_.values.resize(static_cast<size_t>(columns_));
  bool has_area = false;
  for (const auto origin : {TimelineOrigin::kMeasured, TimelineOrigin::kPredicted}) {
    const StepCurve* curve = curve_of(row, origin);
    if (curve == nullptr || curve->is_empty()) continue;
    curve->means(scene_.from_ps, scene_.to_ps, cache_.values);
    cut_after_run(origin, cache_.values);
    const double step = static_cast<double>(geometry_.plot.width()) / columns_;
    QPainterPath rim;  // One part for each stretch that is not zero.
    float before = 0;
    for (int i = 0; i <= columns_; ++i) {
      const float value = i < columns_ ? cache_.values[static_cast<size_t>(i)] : 0.0F;
      if (value == before) continue;
      const double x = left + i * step;
      if (before == 0) {
        rim.moveTo(x, zero);
      } else {
        rim.lineTo(x, zero - before * per_unit);
      }
      rim.lineTo(x, zero - value * per_unit);
      before = value;
    }
    const bool is_over = has_area && origin == TimelineOrigin::kPredicted;
    const QColor color = curve_color(row, is_over);
    QColor area = color;
    area.setAlphaF(0.4F);
    if (!is_over) painter.fillPath(rim, area);
    painter.strokePath(rim, QPen(color, 1));
    has_area = true;
  }
}

}  // namespace ring::gui
