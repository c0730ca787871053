// BarStrip: the pixels of one row of the plot, drawn line by line from runs of columns.
#pragma once

#include <QImage>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "core/row_levels.h"
#include "gui/paint/theme.h"

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

/// Share of the bar height that waits leave free above and below.
inline constexpr double kWaitInset = 0.3;
/// Bars get an edge from this width on, in units of the widget.
inline constexpr double kEdgeFrom = 3;
/// Bars that fill hardly any of a column are still drawn this strongly, of 255.
inline constexpr int kFaintest = 72;

class BarStrip {
 public:
  /// `ground` is one line of the plot without bars: background and grid.
  void begin(int width, int height, double pixel_ratio, std::span<const QRgb> ground);
  /// The same, with the pixels of someone else instead of `image()`; lines are `stride` apart.
  void begin_at(QRgb* pixels, ptrdiff_t stride, int width, int height, double pixel_ratio,
                std::span<const QRgb> ground);
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

  int width() const { return width_; }
  int height() const { return height_; }
  const QImage& image() const { return image_; }
  QRgb* line(int y) { return bits_ + static_cast<ptrdiff_t>(y) * stride_; }

 private:
  void fill_lines(std::span<const PixelRun> runs, const BarColors& colors, const BarLook& look);
  template <typename Draw>
  void draw_stretches(std::span<const PixelRun> runs, StripLines lines, Draw draw);
  void fill_hatch(int period, int stroke);
  void draw_area_line(int y, size_t columns, QRgb color, bool has_area, bool is_up);

  QImage image_;
  int width_ = 0, height_ = 0;
  double ratio_ = 1;
  QRgb* bits_ = nullptr;  ///< Of `image_`, of which there is no other copy, or of someone else.
  ptrdiff_t stride_ = 0;
  std::vector<QRgb> ground_, line_, edge_line_, pale_line_;
  std::vector<QRgb> hatch_;  ///< All bits set where a stroke is.
  std::vector<int> ends_, rims_;
};

/// `share` of 256 of `over` and the rest of `under`.
QRgb mixed_rgb(QRgb under, QRgb over, int share);

}  // namespace ring::gui
