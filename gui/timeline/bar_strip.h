// BarStrip: the pixels of one row of the plot, drawn line by line from runs of columns.
#pragma once

#include <QImage>
#include <array>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "core/row_levels.h"
#include "gui/paint/theme.h"
#include "gui/timeline/line_kernels.h"

namespace ring::gui {

/// Colours of bars on one background, as 0xFFRRGGBB.
struct BarColors {
  BarColors(const ThemeColors& theme, const QColor& background);
  std::array<QRgb, kBarClasses> solid;  ///< Of measured bars, and the strokes of predicted ones.
  std::array<QRgb, kBarClasses> pale;   ///< Between the strokes.
  std::array<QRgb, kBarClasses> edge;
  QRgb background, critical, hit;
};

/// How bars of one line look.
struct BarLook {
  bool is_hatched = false;
  bool has_edges = true;
  double dim = 0;  ///< Share of the background mixed in: 0.7 for bars that a search left out.
};

/// Lines [top, bottom) of a strip, in device pixels.
struct StripLines {
  int top = 0, bottom = 0;
};

/// The opacity of a text's pixels, drawn once and then blended into strips.
struct TextMask {
  int width = 0, height = 0;
  std::vector<uint8_t> alpha;
};

/// A text in a strip, and the plain box under it.
struct StripLabel {
  const TextMask* mask = nullptr;
  int left = 0, top = 0;  ///< Of the text.
  QRgb color = 0;
  StripLines box;   ///< Empty: no box.
  int box_pad = 0;  ///< Columns of the box beside the text.
  QRgb box_color = 0;
};

/// Share of the bar height that waits leave free above and below.
inline constexpr double kWaitInset = 0.3;
/// Bars get an edge from this width on, in units of the widget.
inline constexpr double kEdgeFrom = 3;
/// Bars that fill hardly any of a column are still drawn this strongly, of 255.
inline constexpr int kFaintest = 72;

/// First everything of the row is added, from the bottom to the top; then `finish` writes every
/// pixel once. Only then are the spans and masks that were handed in no longer needed.
class BarStrip {
 public:
  /// `ground` is one line of the plot without bars: background and grid.
  void begin(int width, int height, double pixel_ratio, std::span<const QRgb> ground);
  /// The same, with the pixels of someone else instead of `image()`; lines are `stride` apart.
  /// `past_caches`: see `write_line`.
  void begin_at(QRgb* pixels, ptrdiff_t stride, int width, int height, double pixel_ratio,
                std::span<const QRgb> ground, bool past_caches);
  /// Fills the lines with bars. `phase` moves the hatching, in device pixels.
  void add_bars(std::span<const PixelRun> runs, StripLines lines, const BarColors& colors,
                const BarLook& look, int phase);
  /// Frames the runs.
  void add_outline(std::span<const PixelRun> runs, StripLines lines, QRgb color);
  /// An area from `zero_line` up to the value of each column (down for negative ones), over the
  /// ground with `opacity`, and without it along the values. Without any opacity only a line.
  void add_area(std::span<const float> values, StripLines lines, double zero_line,
                double lines_per_unit, QRgb color, double opacity);
  void add_line(int line, QRgb color);
  void add_label(const StripLabel& label);
  void finish();

  int width() const { return width_; }
  int height() const { return height_; }
  const QImage& image() const { return image_; }

 private:
  /// Something on some lines. Whole ones cover all columns, so what lies below does not matter.
  struct Layer {
    enum Kind { kWhole, kSome, kHatchedWhole, kHatchedSome, kArea } kind = kWhole;
    StripLines lines;
    const PixelMask* cover = nullptr;
    const QRgb* strokes = nullptr;  ///< Of areas: what is inside.
    const QRgb* between = nullptr;  ///< The only colours of layers that are not hatched.
    int hatch_start = 0;
    const int32_t* ends = nullptr;
    const int32_t* rims = nullptr;
    QRgb rim = 0;
    bool has_inside = false;
    bool is_mirrored = false;
  };
  /// The colours of a class of bars at a share of filled columns.
  struct Tone {
    uint64_t of_fill = 0;  ///< The call of `fill_lines` that it is of.
    QRgb solid = 0, pale = 0, edge = 0;
  };
  /// One line of bars each: within them, along their upper and lower edges, between the strokes of
  /// hatched ones; and where bars are that work and that wait. Empty where nobody asks.
  struct BarLines {
    std::span<QRgb> inner, edge, between;
    std::span<PixelMask> works, waits;
  };

  void fill_lines(const BarLines& into, std::span<const PixelRun> runs, const BarColors& colors,
                  const BarLook& look);
  const Tone& tone_of(const PixelRun& run, const BarColors& colors, const BarLook& look);
  BarLines bar_lines(bool is_hatched);
  void add_whole_bars(const BarLines& lines_of, std::span<const PixelRun> runs, StripLines lines,
                      StripLines waits, Layer inner);
  void add_some_bars(const BarLines& lines_of, StripLines lines, StripLines waits, Layer inner);
  void add_bands(const Layer& inner, const QRgb* edge_line, StripLines lines);
  void add_area_side(std::span<const int32_t> ends, StripLines lines, int zero, const Layer& look);
  void add_layer(Layer layer, int top, int bottom);
  bool is_free(StripLines lines) const;
  void fill_hatch();
  void apply(const Layer& layer, const QRgb* under, int y);
  void draw_line(int y);
  void apply_labels(int y);
  QRgb* line(int y) { return bits_ + static_cast<ptrdiff_t>(y) * stride_; }
  std::span<QRgb> pixels();
  std::span<int32_t> numbers();

  QImage image_;
  int width_ = 0, height_ = 0;
  double ratio_ = 1;
  QRgb* bits_ = nullptr;  ///< Of `image_`, of which there is no other copy, or of someone else.
  ptrdiff_t stride_ = 0;
  bool past_caches_ = false;
  std::vector<Layer> layers_;
  std::vector<StripLabel> labels_;
  std::vector<QRgb> ground_, line_;
  // Lines of the layers, kept from row to row.
  std::deque<std::vector<QRgb>> pixel_lines_;
  std::deque<std::vector<int32_t>> number_lines_;
  size_t pixels_used_ = 0, numbers_used_ = 0;
  std::vector<PixelMask> hatch_;  ///< All bits set where a stroke is.
  int hatch_period_ = 0, hatch_stroke_ = 0;
  std::vector<Tone> tones_;
  uint64_t fills_ = 0;
  std::vector<size_t> at_line_, at_line_before_;
};

/// `share` of 256 of `over` and the rest of `under`.
QRgb mixed_rgb(QRgb under, QRgb over, int share);

}  // namespace ring::gui
