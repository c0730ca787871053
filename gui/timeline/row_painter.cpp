// The rows of the plot in pixels: each one a strip that is filled line by line and drawn once.
#include <QPaintEngine>
#include <QPainter>
#include <algorithm>
#include <cmath>

#include "core/time_ticks.h"
#include "gui/timeline/timeline_painter.h"

namespace ring::gui {
namespace {

/// Bars that a search left out keep so little of their colour.
constexpr double kDimmed = 0.8;
constexpr double kAreaOpacity = 0.4;

/// Lowest and highest device line of a height range.
StripLines device_lines(double top, double height, double ratio, int strip_top) {
  return {static_cast<int>(std::lround(top * ratio)) - strip_top,
          static_cast<int>(std::lround((top + height) * ratio)) - strip_top};
}

}  // namespace

std::vector<QRgb> TimelinePainter::ground_line(const QColor& background) const {
  std::vector<QRgb> line(static_cast<size_t>(columns_), background.rgb());
  const double ratio = style_.pixel_ratio;
  const double left = geometry_.plot.left();
  const auto column = [&](double x) {
    return static_cast<int>(std::clamp(std::floor((x - left) * ratio), -1.0, columns_ * 1.0));
  };
  const QRgb outside = blended(background, colors_.separator, 0.22).rgb();
  const int begin = std::max(0, column(scale_.x_of(scene_.model->begin_ps)));
  const int end = std::clamp(column(scale_.x_of(scene_.model->end_ps)) + 1, 0, columns_);
  std::fill(line.begin(), line.begin() + std::min(begin, columns_), outside);
  std::fill(line.begin() + end, line.end(), outside);
  const double digit = std::max(6.0, font_.horizontalAdvance(QLatin1Char('0')));
  const int wanted = std::max(2, static_cast<int>(geometry_.plot.width() / (14 * digit)));
  const int thick = std::max(1, static_cast<int>(std::lround(ratio)));
  for (const TimeTick& tick : time_ticks(scene_.from_ps, scene_.to_ps, wanted).ticks) {
    const int at = column(std::floor(scale_.x_of(tick.at_ps)));
    for (int x = std::max(0, at); x < std::min(columns_, at + thick); ++x) {
      line[static_cast<size_t>(x)] = colors_.grid.rgb();
    }
  }
  return line;
}

void TimelinePainter::paint_rows(QPainter& painter) {
  const TimelineLayout& layout = *scene_.layout;
  const QRect plot = geometry_.plot;
  find_target(painter);
  painter.save();
  painter.setClipRect(plot, Qt::IntersectClip);
  const auto [first, last] =
      layout.groups_between(scene_.scroll_y, scene_.scroll_y + plot.height());
  for (int g = first; g < last; ++g) {
    const LayoutGroup& group = layout.groups()[static_cast<size_t>(g)];
    for (int i = group.first_row; i < group.first_row + group.row_count; ++i) {
      const LayoutRow& row = layout.rows()[static_cast<size_t>(i)];
      if (top_of(row) > plot.bottom() + layout.metrics().group_gap ||
          top_of(row) + row.height + 2 * layout.metrics().group_gap < plot.top()) {
        continue;
      }
      if (style_.is_vector) {
        draw_row_shapes(painter, row, g % 2 == 1);
      } else {
        paint_row(painter, row, g % 2 == 1);
      }
    }
  }
  const double below = plot.top() + layout.height() - scene_.scroll_y;
  if (below <= plot.bottom()) {
    painter.fillRect(QRectF(plot.left(), below, plot.width(), plot.bottom() + 1 - below),
                     colors_.panel);
  }
  painter.restore();
}

/// Where the pixels of the view are, if the painter draws into an image without turning anything.
void TimelinePainter::find_target(const QPainter& painter) {
  target_ = nullptr;
  const QPaintEngine* const engine = painter.paintEngine();
  if (!style_.writes_directly || engine == nullptr || engine->type() != QPaintEngine::Raster)
    return;
  const QPaintDevice* const device = engine->paintDevice();
  if (device == nullptr || device->devType() != QInternal::Image) return;
  const auto* const image = static_cast<const QImage*>(device);
  const bool has_format = image->format() == QImage::Format_RGB32 ||
                          image->format() == QImage::Format_ARGB32_Premultiplied;
  const QTransform to_device = painter.deviceTransform();
  const double ratio = style_.pixel_ratio;
  const auto left = static_cast<int>(to_device.dx()), top = static_cast<int>(to_device.dy());
  if (!has_format || to_device.type() > QTransform::TxScale || to_device.m11() != ratio ||
      to_device.m22() != ratio || to_device.dx() != left || to_device.dy() != top) {
    return;
  }
  const QRect needed(left, top, static_cast<int>(std::ceil(size_.width() * ratio)),
                     static_cast<int>(std::ceil(size_.height() * ratio)));
  if (!image->rect().contains(needed)) return;
  target_stride_ = image->bytesPerLine() / static_cast<ptrdiff_t>(sizeof(QRgb));
  // The painter has the image for writing; asking it for the same would make a copy.
  target_ = const_cast<QRgb*>(reinterpret_cast<const QRgb*>(image->constBits())) +
            top * target_stride_ + left;
}

/// Whether the picture has no place in the caches of most machines.
bool TimelinePainter::is_large() const {
  constexpr double kManyPixels = 4e6;
  return size_.width() * style_.pixel_ratio * size_.height() * style_.pixel_ratio > kManyPixels;
}

/// From the end of the row above to the end of this one's gap, so that strips tile the plot.
void TimelinePainter::paint_row(QPainter& painter, const LayoutRow& row, bool is_banded) {
  const TimelineLayout& layout = *scene_.layout;
  const auto number = static_cast<size_t>(&row - layout.rows().data());
  const auto group = std::partition_point(
      layout.groups().begin(), layout.groups().end(),
      [&](const LayoutGroup& g) { return g.first_row + g.row_count <= static_cast<int>(number); });
  const bool is_first = static_cast<int>(number) == group->first_row;
  const bool is_last = static_cast<int>(number) == group->first_row + group->row_count - 1;
  const int shift = geometry_.plot.top() - scene_.scroll_y;
  const int top = shift + (is_first ? group->y : row.y);
  const int bottom =
      shift + (is_last ? group->y + group->height : row.y + row.height + layout.metrics().row_gap);
  const double ratio = style_.pixel_ratio;
  const StripLines device = device_lines(top, bottom - top, ratio, 0);
  const QColor background = is_banded ? colors_.band : colors_.background;
  const int left = static_cast<int>(std::lround(geometry_.plot.left() * ratio));
  strip_top_ = device.top;
  const int height = device.bottom - device.top;
  const std::vector<QRgb>& ground = ground_[is_banded ? 1 : 0];
  // Rows that are cut at the edge of the plot must be clipped by the painter.
  const bool is_direct =
      target_ != nullptr && top >= geometry_.plot.top() && bottom <= geometry_.plot.bottom() + 1;
  if (is_direct) {
    cache_.strip.begin_at(target_ + device.top * target_stride_ + left, target_stride_, columns_,
                          height, ratio, ground, is_large());
  } else {
    cache_.strip.begin(columns_, height, ratio, ground);
  }
  if (is_first) {
    for (int y = 0; y < std::max(1, static_cast<int>(std::lround(ratio))); ++y) {
      cache_.strip.add_line(y, colors_.separator.rgb());
    }
  }
  if (row.kind == RowKind::kBars) {
    fill_bars(row, bar_colors_[is_banded ? 1 : 0]);
  } else {
    fill_curves(row, background);
  }
  cache_.strip.finish();
  if (is_direct) return;
  painter.save();
  painter.scale(1 / ratio, 1 / ratio);
  painter.drawImage(QPointF(left, device.top), cache_.strip.image(),
                    QRectF(0, 0, columns_, height));
  painter.restore();
}

void TimelinePainter::fill_bars(const LayoutRow& row, const BarColors& colors) {
  for (const auto origin : {TimelineOrigin::kMeasured, TimelineOrigin::kPredicted}) {
    const int number = origin == TimelineOrigin::kMeasured ? row.measured : row.predicted;
    if (number >= 0) fill_line(row, origin, colors);
  }
}

void TimelinePainter::fill_line(const LayoutRow& row, TimelineOrigin origin,
                                const BarColors& colors) {
  const bool is_measured = origin == TimelineOrigin::kMeasured;
  const int number = is_measured ? row.measured : row.predicted;
  const ModelRow& bars = scene_.model->run(origin)->rows[static_cast<size_t>(number)];
  const TimelineLayout& layout = *scene_.layout;
  const int shift = geometry_.plot.top() - scene_.scroll_y;
  const StripLines lines =
      device_lines(shift + layout.line_y(row, origin), layout.line_height(row, origin),
                   style_.pixel_ratio, strip_top_);
  const int phase = static_cast<int>(std::lround(std::fmod(
      static_cast<double>(scene_.from_ps) / scale_.ps_per_unit() * style_.pixel_ratio, 6000.0)));
  BarLook look{!is_measured, true, scene_.hits != nullptr ? kDimmed : 0};
  std::vector<PixelRun>& runs = cache_.runs;
  const auto fold = [&](const RowLevels& levels) {
    runs.clear();
    levels.fold(scene_.from_ps, scene_.to_ps, columns_, runs);
  };
  fold(bars.bars);
  cache_.strip.add_bars(runs, lines, colors, look, phase);
  const bool is_labelled =
      is_measured || row.measured < 0 || layout.mode() != LayoutMode::kOverlaid;
  const StripLines label_lines =
      device_lines(shift + layout.line_y(row, origin), layout.free_height(row, origin),
                   style_.pixel_ratio, strip_top_);
  if (scene_.hits == nullptr) {
    if (is_labelled) fill_labels(runs, label_lines, origin, colors);
  } else {
    fold(scene_.hits->of(origin, number));
    look.dim = 0;
    cache_.strip.add_bars(runs, lines, colors, look, phase);
    if (is_labelled) fill_labels(runs, label_lines, origin, colors);
  }
  // Among faded bars the path would stand out more than what was found.
  if (bars.critical.bars().empty() || scene_.hits != nullptr) return;
  fold(bars.critical);
  cache_.strip.add_outline(runs, lines, colors.critical);
}

const TextMask& TimelinePainter::text_mask(const QString& text) {
  if (cache_.label_ratio != style_.pixel_ratio || cache_.label_font != style_.font) {
    cache_.labels.clear();
    cache_.label_ratio = style_.pixel_ratio;
    cache_.label_font = style_.font;
  }
  const auto found = cache_.labels.find(text);
  if (found != cache_.labels.end()) return found->second;
  QFont font = style_.font;
  font.setPointSizeF(font.pointSizeF() > 0 ? font.pointSizeF() * kLabelSize : 8);
  const QFontMetricsF metrics(font);
  TextMask mask;
  const double ratio = style_.pixel_ratio;
  mask.width = static_cast<int>(std::ceil(metrics.horizontalAdvance(text) * ratio)) + 1;
  mask.height = std::max(1, static_cast<int>(std::ceil(metrics.height() * ratio)));
  QImage image(mask.width, mask.height, QImage::Format_ARGB32_Premultiplied);
  image.fill(Qt::transparent);
  QPainter painter(&image);
  painter.scale(ratio, ratio);
  painter.setFont(font);
  painter.setPen(Qt::white);
  painter.drawText(QPointF(0, metrics.ascent()), text);
  painter.end();
  mask.alpha.reserve(static_cast<size_t>(mask.width) * static_cast<size_t>(mask.height));
  for (int y = 0; y < mask.height; ++y) {
    const auto* const line = reinterpret_cast<const QRgb*>(image.constScanLine(y));
    for (int x = 0; x < mask.width; ++x) {
      mask.alpha.push_back(static_cast<uint8_t>(qAlpha(line[x])));
    }
  }
  return cache_.labels.emplace(text, std::move(mask)).first->second;
}

/// Names the bars that have room for it. On hatching the name stands on a plain ground.
void TimelinePainter::fill_labels(std::span<const PixelRun> runs, StripLines lines,
                                  TimelineOrigin origin, const BarColors& colors) {
  const ModelRun& run = *scene_.model->run(origin);
  const double ratio = style_.pixel_ratio;
  const int pad = static_cast<int>(std::lround(4 * ratio));
  const int least = static_cast<int>(std::lround(16 * ratio));
  for (const PixelRun& pixels : runs) {
    const int room = pixels.end - pixels.begin;
    if (pixels.is_folded || pixels.of_class == kWaitClass || room < least) continue;
    const QString label = bar_label(run.slice(pixels.slice));
    if (label.isEmpty()) continue;
    const TextMask& mask = text_mask(label);
    if (mask.width + 2 * pad > room) continue;
    StripLabel at;
    at.mask = &mask;
    at.left = pixels.begin + (room - mask.width) / 2;
    at.top = lines.top + (lines.bottom - lines.top - mask.height) / 2;
    at.color = label_colors_[pixels.of_class];
    if (origin == TimelineOrigin::kPredicted) {
      at.box = {std::max(lines.top + pad / 4, at.top),
                std::min(lines.bottom - pad / 4, at.top + mask.height)};
      at.box_pad = pad / 2;
      at.box_color = colors.pale[pixels.of_class];
      at.color = colors_.text.rgb();
    }
    cache_.strip.add_label(at);
  }
}

void TimelinePainter::fill_curves(const LayoutRow& row, const QColor& background) {
  const double ratio = style_.pixel_ratio;
  const int shift = geometry_.plot.top() - scene_.scroll_y;
  const StripLines lines = device_lines(shift + row.y, row.height, ratio, strip_top_);
  const bool is_signed = row.kind == RowKind::kDifference;
  const double height = lines.bottom - lines.top;
  const double zero = is_signed ? lines.top + height / 2 : lines.bottom;
  const double scale = curve_scale(row);
  const double per_unit = (is_signed ? height / 2 : height) / scale;
  cache_.strip.add_line(static_cast<int>(zero) - (is_signed ? 0 : 1),
                        blended(background, colors_.separator, 0.7).rgb());
  cache_.values.resize(static_cast<size_t>(columns_));
  bool has_area = false;
  for (const auto origin : {TimelineOrigin::kMeasured, TimelineOrigin::kPredicted}) {
    const StepCurve* curve = curve_of(row, origin);
    if (curve == nullptr || curve->is_empty()) continue;
    curve->means(scene_.from_ps, scene_.to_ps, cache_.values);
    cut_after_run(origin, cache_.values);
    const bool is_over = has_area && origin == TimelineOrigin::kPredicted;
    cache_.strip.add_area(cache_.values, lines, zero, per_unit, curve_color(row, is_over).rgb(),
                          is_over ? 0 : kAreaOpacity);
    has_area = true;
  }
}

QColor TimelinePainter::curve_color(const LayoutRow& row, bool is_over) const {
  QColor color = colors_.accent;
  if (row.kind == RowKind::kLink) color = colors_.counter;
  if (row.kind == RowKind::kMemory) color = colors_.memory;
  return is_over ? blended(color, colors_.text, 0.45) : color;
}

/// Nothing is held or sent after the run.
void TimelinePainter::cut_after_run(TimelineOrigin origin, std::span<float> values) const {
  const double end = scale_.x_of(scene_.model->run(origin)->makespan_ps);
  const double column = (end - geometry_.plot.left()) * style_.pixel_ratio;
  if (column >= static_cast<double>(values.size())) return;
  const auto from = static_cast<size_t>(std::max(0.0, std::ceil(column)));
  std::fill(values.begin() + static_cast<ptrdiff_t>(from), values.end(), 0.0F);
}

}  // namespace ring::gui
