#include "gui/timeline/bar_strip.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace ring::gui {
namespace {

constexpr double kHatchPeriod = 6;  ///< Units of the widget between strokes, along a line.
constexpr double kHatchStroke = 2.4;

/// Colour of a class; waiting is the last one.
QColor class_color(size_t of_class) {
  return of_class == kWaitClass ? wait_color() : op_color(static_cast<OpKind>(of_class));
}

/// The colour of a run on the background: faint where little of it is filled.
QRgb on_ground(QRgb color, const PixelRun& run, const BarColors& colors, const BarLook& look) {
  const int fill = std::max<int>(run.fill, kFaintest);
  const int share = static_cast<int>(std::lround(fill * (1 - look.dim) * 256 / 255));
  return share >= 256 ? color : mixed_rgb(colors.background, color, share);
}

bool has_edge(const PixelRun& run, const BarLook& look, double ratio) {
  return look.has_edges && !run.is_folded && run.end - run.begin >= kEdgeFrom * ratio;
}

}  // namespace

QRgb mixed_rgb(QRgb under, QRgb over, int share) {
  const auto mix = [&](int a, int b) { return a + (((b - a) * share) >> 8); };
  return qRgb(mix(qRed(under), qRed(over)), mix(qGreen(under), qGreen(over)),
              mix(qBlue(under), qBlue(over)));
}

BarColors::BarColors(const ThemeColors& theme, const QColor& ground)
    : background(ground.rgb()), critical(critical_color().rgb()), hit(theme.hit.rgb()) {
  for (size_t i = 0; i < kBarClasses; ++i) {
    const QColor color = class_color(i);
    solid[i] = color.rgb();
    pale[i] = blended(ground, color, theme.has_dark_edges ? 0.28 : 0.34).rgb();
    edge[i] = blended(color, theme.has_dark_edges ? QColor(Qt::black) : QColor(Qt::white),
                      theme.has_dark_edges ? 0.35 : 0.25)
                  .rgb();
  }
}

void BarStrip::begin(int width, int height, double pixel_ratio, std::span<const QRgb> ground) {
  width_ = width;
  height_ = height;
  ratio_ = pixel_ratio;
  if (image_.width() != width || image_.height() < height) {
    image_ = QImage(width, std::max(height, image_.height()), QImage::Format_RGB32);
  }
  ground_.assign(ground.begin(), ground.end());
  for (int y = 0; y < height; ++y) {
    std::memcpy(line(y), ground.data(), static_cast<size_t>(width) * sizeof(QRgb));
  }
}

void BarStrip::add_bars(std::span<const PixelRun> runs, StripLines lines, const BarColors& colors,
                        const BarLook& look, int phase) {
  if (runs.empty() || lines.top >= lines.bottom) return;
  if (look.is_hatched) {
    draw_hatched(runs, lines, colors, look, phase);
  } else {
    draw_solid(runs, lines, colors, look);
  }
}

void BarStrip::draw_solid(std::span<const PixelRun> runs, StripLines lines, const BarColors& colors,
                          const BarLook& look) {
  const int inset = static_cast<int>(std::lround((lines.bottom - lines.top) * kWaitInset));
  const int edge = std::max(1, static_cast<int>(std::lround(ratio_)));
  const auto draw = [&](std::span<const QRgb> from, const PixelRun& run, int top, int bottom) {
    const auto bytes = static_cast<size_t>(run.end - run.begin) * sizeof(QRgb);
    for (int y = top; y < bottom; ++y) {
      std::memcpy(line(y) + run.begin, from.data() + run.begin, bytes);
    }
  };
  // Runs that touch are copied together; waits are lower, so they go by themselves.
  line_ = ground_;
  edge_line_ = ground_;
  bool has_waits = false;
  for (const PixelRun& run : runs) {
    const QRgb color = on_ground(colors.solid[run.of_class], run, colors, look);
    const bool is_edged = has_edge(run, look, ratio_);
    const QRgb rim = is_edged ? on_ground(colors.edge[run.of_class], run, colors, look) : color;
    std::fill(line_.begin() + run.begin, line_.begin() + run.end, color);
    std::fill(edge_line_.begin() + run.begin, edge_line_.begin() + run.end, rim);
    if (is_edged) {
      std::fill(line_.begin() + run.begin, line_.begin() + run.begin + edge, rim);
      std::fill(line_.begin() + run.end - edge, line_.begin() + run.end, rim);
    }
    has_waits = has_waits || run.of_class == kWaitClass;
  }
  for (size_t first = 0; first < runs.size();) {
    PixelRun stretch = runs[first];
    const bool is_wait = stretch.of_class == kWaitClass;
    size_t last = first + 1;
    while (last < runs.size() && runs[last].begin == stretch.end &&
           (runs[last].of_class == kWaitClass) == is_wait) {
      stretch.end = runs[last++].end;
    }
    const int top = lines.top + (is_wait ? inset : 0);
    const int bottom = lines.bottom - (is_wait ? inset : 0);
    draw(edge_line_, stretch, top, std::min(top + edge, bottom));
    draw(line_, stretch, top + edge, bottom - edge);
    draw(edge_line_, stretch, std::max(top, bottom - edge), bottom);
    first = last;
  }
}

void BarStrip::draw_hatched(std::span<const PixelRun> runs, StripLines lines,
                            const BarColors& colors, const BarLook& look, int phase) {
  const int inset = static_cast<int>(std::lround((lines.bottom - lines.top) * kWaitInset));
  const int period = std::max(3, static_cast<int>(std::lround(kHatchPeriod * ratio_)));
  const int stroke = std::max(1, static_cast<int>(std::lround(kHatchStroke * ratio_)));
  const int edge = std::max(1, static_cast<int>(std::lround(ratio_)));
  if (hatch_.size() != static_cast<size_t>(width_ + period)) {
    hatch_.resize(static_cast<size_t>(width_ + period));
    for (size_t x = 0; x < hatch_.size(); ++x) {
      hatch_[x] = static_cast<int>(x) % period < stroke ? 1 : 0;
    }
  }
  const int start = ((phase % period) + period) % period;
  for (const PixelRun& run : runs) {
    const bool is_wait = run.of_class == kWaitClass;
    const int top = lines.top + (is_wait ? inset : 0);
    const int bottom = lines.bottom - (is_wait ? inset : 0);
    const QRgb dark = on_ground(colors.solid[run.of_class], run, colors, look);
    const QRgb pale = on_ground(colors.pale[run.of_class], run, colors, look);
    const bool is_edged = has_edge(run, look, ratio_);
    for (int y = top; y < bottom; ++y) {
      QRgb* const out = line(y);
      if (is_edged && (y < top + edge || y >= bottom - edge)) {
        std::fill(out + run.begin, out + run.end, dark);
        continue;
      }
      const uint8_t* const mask = hatch_.data() + (y + start) % period;
      for (int x = run.begin; x < run.end; ++x) out[x] = mask[x] != 0 ? dark : pale;
      if (is_edged) {
        std::fill(out + run.begin, out + run.begin + edge, dark);
        std::fill(out + run.end - edge, out + run.end, dark);
      }
    }
  }
}

void BarStrip::add_outline(std::span<const PixelRun> runs, StripLines lines, QRgb color) {
  const int thick = std::max(2, static_cast<int>(std::lround(2 * ratio_)));
  for (const PixelRun& run : runs) {
    for (int y = lines.top; y < lines.bottom; ++y) {
      QRgb* const out = line(y);
      if (y < lines.top + thick || y >= lines.bottom - thick) {
        std::fill(out + run.begin, out + run.end, color);
      } else if (!run.is_folded && run.end - run.begin >= 3 * thick) {
        std::fill(out + run.begin, out + run.begin + thick, color);
        std::fill(out + run.end - thick, out + run.end, color);
      }
    }
  }
}

void BarStrip::add_area(std::span<const float> values, StripLines lines, double zero_line,
                        double lines_per_unit, QRgb color, double opacity) {
  const int share = static_cast<int>(std::lround(256 * opacity));
  const int rim = std::max(1, static_cast<int>(std::lround(ratio_)));
  const int zero = static_cast<int>(std::lround(zero_line));
  const auto columns = std::min<size_t>(values.size(), static_cast<size_t>(width_));
  std::vector<int> ends(columns);
  for (size_t x = 0; x < columns; ++x) {
    int end = static_cast<int>(std::lround(zero_line - values[x] * lines_per_unit));
    if (end == zero && values[x] != 0) end += values[x] > 0 ? -rim : rim;  // Not nothing.
    ends[x] = std::clamp(end, lines.top, lines.bottom);
  }
  for (int y = lines.top; y < lines.bottom; ++y) {
    QRgb* const out = line(y);
    for (size_t x = 0; x < columns; ++x) {
      const int end = ends[x];
      if (end == zero) continue;
      const bool is_up = end < zero;
      if (is_up ? y < end || y >= zero : y < zero || y >= end) continue;
      // The rim also joins a column to a lower one before it.
      const int before = x > 0 ? ends[x - 1] : zero;
      const bool is_rim = is_up ? y < std::max(end + rim, std::min(before, zero))
                                : y >= std::min(end - rim, std::max(before, zero));
      out[x] = is_rim ? color : mixed_rgb(out[x], color, share);
    }
  }
}

void BarStrip::add_line(int y, QRgb color) {
  if (y < 0 || y >= height_) return;
  std::fill(line(y), line(y) + width_, color);
}

}  // namespace ring::gui
