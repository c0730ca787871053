#include "gui/timeline/bar_strip.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace ring::gui {
namespace {

constexpr double kHatchPeriod = 6;  ///< Units of the widget between strokes, along a line.
constexpr double kHatchStroke = 2.4;
constexpr size_t kFills = 256;

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

int device_length(double units, double ratio, int least) {
  return std::max(least, static_cast<int>(std::lround(units * ratio)));
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
           ground, false);
}

void BarStrip::begin_at(QRgb* pixels, ptrdiff_t stride, int width, int height, double pixel_ratio,
                        std::span<const QRgb> ground, bool past_caches) {
  bits_ = pixels;
  stride_ = stride;
  if (width != width_) {
    pixel_lines_.clear();
    number_lines_.clear();
  }
  width_ = width;
  height_ = height;
  ratio_ = pixel_ratio;
  past_caches_ = past_caches;
  ground_.assign(ground.begin(), ground.end());
  line_.resize(static_cast<size_t>(width));
  layers_.clear();
  labels_.clear();
  pixels_used_ = numbers_used_ = 0;
  fill_hatch();
}

/// A line's room, with whatever it holds from before.
std::span<QRgb> BarStrip::pixels() {
  if (pixels_used_ == pixel_lines_.size()) pixel_lines_.emplace_back(static_cast<size_t>(width_));
  return pixel_lines_[pixels_used_++];
}

std::span<int32_t> BarStrip::numbers() {
  if (numbers_used_ == number_lines_.size()) {
    number_lines_.emplace_back(static_cast<size_t>(width_));
  }
  return number_lines_[numbers_used_++];
}

void BarStrip::fill_hatch() {
  const int period = device_length(kHatchPeriod, ratio_, 3);
  const int stroke = device_length(kHatchStroke, ratio_, 1);
  const auto size = static_cast<size_t>(width_ + period);
  if (hatch_.size() == size && hatch_period_ == period && hatch_stroke_ == stroke) return;
  hatch_period_ = period;
  hatch_stroke_ = stroke;
  hatch_.resize(size);
  for (size_t x = 0; x < size; ++x) {
    hatch_[x] = static_cast<int>(x) % period < stroke ? kAllBits : 0U;
  }
}

bool BarStrip::is_free(StripLines lines) const {
  return std::none_of(layers_.begin(), layers_.end(), [&](const Layer& layer) {
    return layer.lines.top < lines.bottom && layer.lines.bottom > lines.top;
  });
}

void BarStrip::add_layer(Layer layer, int top, int bottom) {
  layer.lines = {std::max(0, top), std::min(height_, bottom)};
  if (layer.lines.top < layer.lines.bottom) layers_.push_back(layer);
}

const BarStrip::Tone& BarStrip::tone_of(const PixelRun& run, const BarColors& colors,
                                        const BarLook& look) {
  Tone& tone = tones_[run.of_class * kFills + run.fill];
  if (tone.of_fill != fills_) {
    tone = {fills_, on_ground(colors.solid[run.of_class], run, colors, look),
            look.is_hatched ? on_ground(colors.pale[run.of_class], run, colors, look) : 0,
            look.is_hatched ? 0 : on_ground(colors.edge[run.of_class], run, colors, look)};
  }
  return tone;
}

void BarStrip::fill_lines(const BarLines& into, std::span<const PixelRun> runs,
                          const BarColors& colors, const BarLook& look) {
  const int side = device_length(1, ratio_, 1);
  const auto fill = [](std::span<QRgb> out, int begin, int end, QRgb color) {
    for (int x = begin; x < end; ++x) out[static_cast<size_t>(x)] = color;
  };
  tones_.resize(kBarClasses * kFills);
  ++fills_;
  for (const PixelRun& run : runs) {
    const Tone& tone = tone_of(run, colors, look);
    const bool is_edged =
        look.has_edges && !run.is_folded && run.end - run.begin >= kEdgeFrom * ratio_;
    const QRgb inner = look.is_hatched ? tone.pale : tone.solid;
    const QRgb rim = !is_edged ? inner : look.is_hatched ? tone.solid : tone.edge;
    fill(into.inner, run.begin, run.end, tone.solid);
    fill(into.edge, run.begin, run.end, rim);
    if (look.is_hatched) fill(into.between, run.begin, run.end, inner);
    const std::span<PixelMask> cover = run.of_class == kWaitClass ? into.waits : into.works;
    if (!cover.empty()) fill(cover, run.begin, run.end, kAllBits);
    if (!is_edged) continue;
    for (const std::span<QRgb> out : {into.inner, into.between}) {
      if (out.empty()) continue;
      fill(out, run.begin, run.begin + side, rim);
      fill(out, run.end - side, run.end, rim);
    }
  }
}

/// `inner` on the lines, but for an edge above and below.
void BarStrip::add_bands(const Layer& inner, const QRgb* edge_line, StripLines lines) {
  const int edge = std::min(device_length(1, ratio_, 1), (lines.bottom - lines.top + 1) / 2);
  Layer band = inner;
  add_layer(band, lines.top + edge, lines.bottom - edge);
  band.between = edge_line;
  add_layer(band, lines.top, lines.top + edge);
  add_layer(band, std::max(lines.top + edge, lines.bottom - edge), lines.bottom);
}

BarStrip::BarLines BarStrip::bar_lines(bool is_hatched) {
  return {pixels(), pixels(), is_hatched ? pixels() : std::span<QRgb>(), {}, {}};
}

void BarStrip::add_bars(std::span<const PixelRun> runs, StripLines lines, const BarColors& colors,
                        const BarLook& look, int phase) {
  if (runs.empty() || lines.top >= lines.bottom) return;
  const bool is_whole = is_free(lines);
  const bool has_waits = std::any_of(
      runs.begin(), runs.end(), [](const PixelRun& run) { return run.of_class == kWaitClass; });
  BarLines of = bar_lines(look.is_hatched);
  if (is_whole) {
    for (const std::span<QRgb> out : {of.inner, of.edge, of.between}) {
      if (!out.empty()) std::copy(ground_.begin(), ground_.end(), out.begin());
    }
  } else {
    of.works = pixels();
    std::fill(of.works.begin(), of.works.end(), 0U);
  }
  StripLines waits;
  if (has_waits) {
    // Waits are lower than work.
    const int inset = static_cast<int>(std::lround((lines.bottom - lines.top) * kWaitInset));
    waits = {lines.top + inset, lines.bottom - inset};
    of.waits = pixels();
    std::fill(of.waits.begin(), of.waits.end(), 0U);
  }
  fill_lines(of, runs, colors, look);
  Layer inner;
  inner.kind = look.is_hatched ? Layer::kHatchedWhole : Layer::kWhole;
  inner.strokes = of.inner.data();
  inner.between = look.is_hatched ? of.between.data() : of.inner.data();
  inner.hatch_start = ((phase % hatch_period_) + hatch_period_) % hatch_period_;
  if (is_whole) {
    add_whole_bars(of, runs, lines, waits, inner);
  } else {
    add_some_bars(of, lines, waits, inner);
  }
}

/// Where nothing lies below but the ground, its pixels are part of the lines.
void BarStrip::add_whole_bars(const BarLines& of, std::span<const PixelRun> runs, StripLines lines,
                              StripLines waits, Layer inner) {
  if (of.waits.empty()) return add_bands(inner, of.edge.data(), lines);
  // Above and below the waits there is ground in their columns.
  const BarLines apart = bar_lines(!of.between.empty());
  const std::array<std::pair<std::span<QRgb>, std::span<QRgb>>, 3> copies = {
      {{of.inner, apart.inner}, {of.edge, apart.edge}, {of.between, apart.between}}};
  for (const auto& [from, to] : copies) {
    std::copy(from.begin(), from.end(), to.begin());
    for (const PixelRun& run : runs) {
      if (run.of_class != kWaitClass || to.empty()) continue;
      std::copy(ground_.begin() + run.begin, ground_.begin() + run.end, to.begin() + run.begin);
    }
  }
  Layer outer = inner;
  outer.strokes = apart.inner.data();
  outer.between = apart.between.empty() ? apart.inner.data() : apart.between.data();
  add_bands(outer, apart.edge.data(), lines);
  add_layer(inner, waits.top, waits.bottom);
  Layer rim = inner;
  rim.kind = inner.kind == Layer::kHatchedWhole ? Layer::kHatchedSome : Layer::kSome;
  rim.cover = of.waits.data();
  rim.between = of.edge.data();
  const int edge = std::min(device_length(1, ratio_, 1), (waits.bottom - waits.top + 1) / 2);
  add_layer(rim, waits.top, waits.top + edge);
  add_layer(rim, std::max(waits.top + edge, waits.bottom - edge), waits.bottom);
}

/// Over bars that were added before.
void BarStrip::add_some_bars(const BarLines& of, StripLines lines, StripLines waits, Layer inner) {
  inner.kind = inner.kind == Layer::kHatchedWhole ? Layer::kHatchedSome : Layer::kSome;
  inner.cover = of.works.data();
  add_bands(inner, of.edge.data(), lines);
  if (of.waits.empty()) return;
  inner.cover = of.waits.data();
  add_bands(inner, of.edge.data(), waits);
}

void BarStrip::add_outline(std::span<const PixelRun> runs, StripLines lines, QRgb color) {
  if (runs.empty()) return;
  // Neighbours on the path make one line of two sides.
  const int side = device_length(1, ratio_, 1);
  const int thick = std::min(2 * side, (lines.bottom - lines.top + 1) / 2);
  const std::span<QRgb> colors = pixels();
  const std::span<PixelMask> across = pixels(), along = pixels();
  std::fill(colors.begin(), colors.end(), color);
  std::fill(across.begin(), across.end(), 0U);
  std::fill(along.begin(), along.end(), 0U);
  const auto mark = [](std::span<PixelMask> mask, int begin, int end) {
    for (int x = begin; x < end; ++x) mask[static_cast<size_t>(x)] = kAllBits;
  };
  for (const PixelRun& run : runs) {
    mark(across, run.begin, run.end);
    if (run.is_folded || run.end - run.begin < 6 * side) continue;
    mark(along, run.begin, run.begin + side);
    mark(along, run.end - side, run.end);
  }
  Layer layer;
  layer.kind = Layer::kSome;
  layer.between = colors.data();
  layer.cover = along.data();
  add_layer(layer, lines.top + thick, lines.bottom - thick);
  layer.cover = across.data();
  add_layer(layer, lines.top, lines.top + thick);
  add_layer(layer, std::max(lines.top + thick, lines.bottom - thick), lines.bottom);
}

void BarStrip::add_area(std::span<const float> values, StripLines lines, double zero_line,
                        double lines_per_unit, QRgb color, double opacity) {
  const int share = static_cast<int>(std::lround(256 * opacity));
  const int rim = device_length(1, ratio_, 1);
  const int zero = std::clamp(static_cast<int>(std::lround(zero_line)), lines.top, lines.bottom);
  const auto columns = static_cast<size_t>(width_);
  if (values.size() < columns || lines.top >= lines.bottom) return;
  const std::span<QRgb> inside = pixels();
  // What the area looks like over the ground, which is the same on all lines.
  for (size_t x = 0; x < columns; ++x) {
    inside[x] =
        x > 0 && ground_[x] == ground_[x - 1] ? inside[x - 1] : mixed_rgb(ground_[x], color, share);
  }
  const std::span<int32_t> ends = numbers();
  int lowest = zero, highest = zero;
  for (size_t x = 0; x < columns; ++x) {
    const double at = std::max(-1.0, zero_line - values[x] * lines_per_unit);
    int end = static_cast<int>(std::min(at, 1e6) + 0.5);
    // Little is not nothing.
    if (end == zero && values[x] != 0) end += values[x] > 0 ? -rim : rim;
    ends[x] = std::clamp(end, lines.top, lines.bottom);
    lowest = std::min(lowest, ends[x]);
    highest = std::max(highest, ends[x]);
  }
  Layer look;
  look.kind = Layer::kArea;
  look.strokes = inside.data();
  look.rim = color;
  look.has_inside = share > 0;
  if (lowest < zero) add_area_side(ends, {lines.top, zero}, zero, look);
  look.is_mirrored = true;
  if (highest > zero) add_area_side(ends, {zero, lines.bottom}, zero, look);
}

/// Columns from their end to the rim in the colour, and on to the zero line as area. The rim also
/// joins a column to a lower one before or after it.
void BarStrip::add_area_side(std::span<const int32_t> ends, StripLines lines, int zero,
                             const Layer& look) {
  const std::span<int32_t> own = numbers(), rims = numbers();
  const int rim = device_length(1, ratio_, 1);
  const bool is_up = !look.is_mirrored;
  int before = zero;
  for (size_t x = 0; x < own.size(); ++x) {
    own[x] = is_up ? std::min(ends[x], zero) : std::max(ends[x], zero);
    rims[x] = is_up ? std::min(zero, std::max(own[x] + rim, before))
                    : std::max(zero, std::min(own[x] - rim, before));
    before = own[x];
  }
  Layer layer = look;
  layer.ends = own.data();
  layer.rims = rims.data();
  add_layer(layer, lines.top, lines.bottom);
}

void BarStrip::add_line(int y, QRgb color) {
  Layer layer;
  const std::span<QRgb> whole = pixels();
  std::fill(whole.begin(), whole.end(), color);
  layer.between = whole.data();
  add_layer(layer, y, y + 1);
}

void BarStrip::add_label(const StripLabel& label) { labels_.push_back(label); }

}  // namespace ring::gui
