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
  if (image_.width() != width || image_.height() < height) {
    image_ = QImage(width, std::max(height, image_.height()), QImage::Format_RGB32);
  }
  begin_at(reinterpret_cast<QRgb*>(image_.bits()),
           image_.bytesPerLine() / static_cast<ptrdiff_t>(sizeof(QRgb)), width, height, pixel_ratio,
           ground);
}

void BarStrip::begin_at(QRgb* pixels, ptrdiff_t stride, int width, int height, double pixel_ratio,
                        std::span<const QRgb> ground) {
  bits_ = pixels;
  stride_ = stride;
  width_ = width;
  height_ = height;
  ratio_ = pixel_ratio;
  ground_.assign(ground.begin(), ground.end());
  for (int y = 0; y < height; ++y) {
    std::memcpy(line(y), ground.data(), static_cast<size_t>(width) * sizeof(QRgb));
  }
}

void BarStrip::add_bars(std::span<const PixelRun> runs, StripLines lines, const BarColors& colors,
                        const BarLook& look, int phase) {
  if (runs.empty() || lines.top >= lines.bottom) return;
  fill_lines(runs, colors, look);
  const int edge = std::max(1, static_cast<int>(std::lround(ratio_)));
  if (!look.is_hatched) {
    draw_stretches(runs, lines, [&](const PixelRun& at, int top, int bottom) {
      const auto bytes = static_cast<size_t>(at.end - at.begin) * sizeof(QRgb);
      for (int y = top; y < bottom; ++y) {
        const bool is_edge = y < top + edge || y >= bottom - edge;
        std::memcpy(line(y) + at.begin, (is_edge ? edge_line_ : line_).data() + at.begin, bytes);
      }
    });
    return;
  }
  const int period = std::max(3, static_cast<int>(std::lround(kHatchPeriod * ratio_)));
  fill_hatch(period, std::max(1, static_cast<int>(std::lround(kHatchStroke * ratio_))));
  const int start = ((phase % period) + period) % period;
  draw_stretches(runs, lines, [&](const PixelRun& at, int top, int bottom) {
    for (int y = top; y < bottom; ++y) {
      const bool is_edge = y < top + edge || y >= bottom - edge;
      QRgb* const out = line(y);
      const QRgb* const mask = hatch_.data() + (y + start) % period;
      const QRgb* const dark = line_.data();
      const QRgb* const pale = (is_edge ? edge_line_ : pale_line_).data();
      for (int x = at.begin; x < at.end; ++x) {
        out[x] = pale[x] ^ ((pale[x] ^ dark[x]) & mask[x]);
      }
    }
  });
}

/// One line of the bars each: within them, along their upper and lower edges, and between the
/// strokes of hatched ones.
void BarStrip::fill_lines(std::span<const PixelRun> runs, const BarColors& colors,
                          const BarLook& look) {
  const int edge = std::max(1, static_cast<int>(std::lround(ratio_)));
  const auto size = static_cast<size_t>(width_);
  line_.resize(size);
  edge_line_.resize(size);
  pale_line_.resize(size);
  const auto fill = [](std::vector<QRgb>& out, int begin, int end, QRgb color) {
    std::fill(out.begin() + begin, out.begin() + end, color);
  };
  for (const PixelRun& run : runs) {
    const QRgb color = on_ground(colors.solid[run.of_class], run, colors, look);
    const bool is_edged = has_edge(run, look, ratio_);
    QRgb rim = color, inner = color;
    if (look.is_hatched) {
      inner = on_ground(colors.pale[run.of_class], run, colors, look);
      if (!is_edged) rim = inner;
    } else if (is_edged) {
      rim = on_ground(colors.edge[run.of_class], run, colors, look);
    }
    fill(line_, run.begin, run.end, color);
    fill(pale_line_, run.begin, run.end, inner);
    fill(edge_line_, run.begin, run.end, rim);
    if (!is_edged) continue;
    for (std::vector<QRgb>* const out : {&line_, &pale_line_}) {
      fill(*out, run.begin, run.begin + edge, rim);
      fill(*out, run.end - edge, run.end, rim);
    }
  }
}

/// Calls `draw(columns, top, bottom)` for runs that touch, together. Waits are lower than work.
template <typename Draw>
void BarStrip::draw_stretches(std::span<const PixelRun> runs, StripLines lines, Draw draw) {
  const int inset = static_cast<int>(std::lround((lines.bottom - lines.top) * kWaitInset));
  for (size_t first = 0; first < runs.size();) {
    PixelRun stretch = runs[first];
    const bool is_wait = stretch.of_class == kWaitClass;
    size_t last = first + 1;
    while (last < runs.size() && runs[last].begin == stretch.end &&
           (runs[last].of_class == kWaitClass) == is_wait) {
      stretch.end = runs[last++].end;
    }
    draw(stretch, lines.top + (is_wait ? inset : 0), lines.bottom - (is_wait ? inset : 0));
    first = last;
  }
}

void BarStrip::fill_hatch(int period, int stroke) {
  if (hatch_.size() == static_cast<size_t>(width_ + period)) return;
  hatch_.resize(static_cast<size_t>(width_ + period));
  for (size_t x = 0; x < hatch_.size(); ++x) {
    hatch_[x] = static_cast<int>(x) % period < stroke ? 0xFFFFFFFFU : 0U;
  }
}

void BarStrip::add_outline(std::span<const PixelRun> runs, StripLines lines, QRgb color) {
  // Neighbours on the path make one line of two sides.
  const int side = std::max(1, static_cast<int>(std::lround(ratio_)));
  const int thick = 2 * side;
  for (const PixelRun& run : runs) {
    for (int y = lines.top; y < lines.bottom; ++y) {
      QRgb* const out = line(y);
      if (y < lines.top + thick || y >= lines.bottom - thick) {
        std::fill(out + run.begin, out + run.end, color);
      } else if (!run.is_folded && run.end - run.begin >= 3 * thick) {
        std::fill(out + run.begin, out + run.begin + side, color);
        std::fill(out + run.end - side, out + run.end, color);
      }
    }
  }
}

void BarStrip::add_area(std::span<const float> values, StripLines lines, double zero_line,
                        double lines_per_unit, QRgb color, double opacity) {
  const int share = static_cast<int>(std::lround(256 * opacity));
  const int rim = std::max(1, static_cast<int>(std::lround(ratio_)));
  const int zero = std::clamp(static_cast<int>(std::lround(zero_line)), lines.top, lines.bottom);
  const auto columns = std::min<size_t>(values.size(), static_cast<size_t>(width_));
  if (columns == 0 || lines.top >= lines.bottom) return;
  // What the area looks like over the ground, which is the same on all lines.
  line_.resize(static_cast<size_t>(width_));
  for (size_t x = 0; x < columns; ++x) line_[x] = mixed_rgb(ground_[x], color, share);
  const auto end_of = [&](float value) {
    const double at = std::max(-1.0, zero_line - value * lines_per_unit);
    const int end = static_cast<int>(std::min(at, 1e6) + 0.5);
    const bool is_hidden = end == zero && value != 0;  // Little is not nothing.
    return std::clamp(is_hidden ? zero + (value > 0 ? -rim : rim) : end, lines.top, lines.bottom);
  };
  for (const bool is_up : {true, false}) {
    // Columns from their end to the rim in the colour, and on to the zero line as area. The rim
    // also joins a column to a lower one before or after it.
    ends_.assign(columns, zero);
    rims_.assign(columns, zero);
    bool is_empty = true;
    for (size_t x = 0; x < columns; ++x) {
      const int end = end_of(values[x]);
      if (is_up ? end < zero : end > zero) {
        ends_[x] = end;
        is_empty = false;
      }
    }
    if (is_empty) continue;
    for (size_t x = 0; x < columns; ++x) {
      const int before = x > 0 ? ends_[x - 1] : zero;
      rims_[x] = is_up ? std::min(zero, std::max(ends_[x] + rim, before))
                       : std::max(zero, std::min(ends_[x] - rim, before));
    }
    const auto [top, bottom] = is_up ? std::pair(lines.top, zero) : std::pair(zero, lines.bottom);
    for (int y = top; y < bottom; ++y) {
      draw_area_line(y, columns, color, share > 0, is_up);
    }
  }
}

/// One line of an area of which `ends_` and `rims_` say where its columns are.
void BarStrip::draw_area_line(int y, size_t columns, QRgb color, bool has_area, bool is_up) {
  QRgb* __restrict const out = line(y);
  const int* __restrict const ends = ends_.data();
  const int* __restrict const rims = rims_.data();
  const QRgb* __restrict const area = line_.data();
  // All bits set where a condition holds.
  const auto all = [](bool holds) { return holds ? 0xFFFFFFFFU : 0U; };
  const QRgb fill = all(has_area);
  const int sign = is_up ? 1 : -1;
  const int at = is_up ? y : -y - 1;
  for (size_t x = 0; x < columns; ++x) {
    const QRgb inside = all(at >= sign * ends[x]);
    const QRgb on_rim = inside & all(at < sign * rims[x]);
    const QRgb in_area = inside & ~on_rim & fill;
    out[x] = (out[x] & ~(on_rim | in_area)) | (color & on_rim) | (area[x] & in_area);
  }
}

void BarStrip::add_line(int y, QRgb color) {
  if (y < 0 || y >= height_) return;
  std::fill(line(y), line(y) + width_, color);
}

}  // namespace ring::gui
