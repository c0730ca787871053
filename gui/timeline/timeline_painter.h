// TimelinePainter: draws a TimelineScene, in pixels for the screen or in shapes for SVG and PDF.
#pragma once

#include <QFont>
#include <QFontMetricsF>
#include <QImage>
#include <QString>
#include <array>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "gui/paint/theme.h"
#include "gui/timeline/bar_strip.h"
#include "gui/timeline/timeline_layout.h"
#include "gui/timeline/timeline_scene.h"

class QPainter;

namespace ring::gui {

/// What is kept from one frame to the next: room and small pictures.
struct PaintCache {
  BarStrip strip;
  std::vector<PixelRun> runs;
  std::vector<float> values;
  std::unordered_map<QString, TextMask> labels;
  double label_ratio = 0;
  QFont label_font;
  /// A part of the view that changes rarely, with what it was drawn from.
  struct Part {
    QImage picture;
    QString key;
  };
  Part minimap, header, gutter;
};

struct PaintStyle {
  Theme theme = Theme::kLight;
  QFont font;
  double pixel_ratio = 1;
  bool is_vector = false;
  /// Rows are written into the memory of the device where that is possible; all of the picture
  /// must be wanted. Spares the copy of each row.
  bool writes_directly = false;
};

/// Names in bars, of the size of other text.
inline constexpr double kLabelSize = 0.85;

/// Width of the row names of a layout.
int gutter_width(const TimelineLayout* layout, const QFont& font);

class TimelinePainter {
 public:
  TimelinePainter(const TimelineScene& scene, QSize size, const PaintStyle& style,
                  PaintCache& cache);
  void paint(QPainter& painter);
  const ViewGeometry& geometry() const { return geometry_; }

 private:
  // timeline_painter.cpp
  void paint_kept(QPainter& painter, PaintCache::Part& part, const QRect& area, const QString& key,
                  void (TimelinePainter::*draw)(QPainter&));
  QString part_key() const;
  void paint_gutter(QPainter& painter);
  void paint_nothing(QPainter& painter);
  // header_painter.cpp
  void paint_header(QPainter& painter);
  void paint_legend(QPainter& painter);
  void paint_minimap(QPainter& painter);
  void fill_minimap();
  void paint_ruler(QPainter& painter);
  // row_painter.cpp
  void paint_rows(QPainter& painter);
  void find_target(const QPainter& painter);
  bool is_large() const;
  void paint_row(QPainter& painter, const LayoutRow& row, bool is_banded);
  void fill_bars(const LayoutRow& row, const BarColors& colors);
  void fill_line(const LayoutRow& row, TimelineOrigin origin, const BarColors& colors);
  void fill_labels(std::span<const PixelRun> runs, StripLines lines, TimelineOrigin origin,
                   const BarColors& colors);
  void fill_curves(const LayoutRow& row, const QColor& background);
  void cut_after_run(TimelineOrigin origin, std::span<float> values) const;
  QColor curve_color(const LayoutRow& row, bool is_over) const;
  const TextMask& text_mask(const QString& text);
  std::vector<QRgb> ground_line(const QColor& background) const;
  // row_shapes.cpp
  void draw_row_shapes(QPainter& painter, const LayoutRow& row, bool is_banded);
  void draw_line_shapes(QPainter& painter, const LayoutRow& row, TimelineOrigin origin,
                        const QColor& background);
  void draw_curve_shapes(QPainter& painter, const LayoutRow& row);
  // overlay_painter.cpp
  void paint_plot_overlay(QPainter& painter);
  void paint_flags(QPainter& painter);
  void paint_ends(QPainter& painter);
  void paint_area(QPainter& painter);
  void paint_flows(QPainter& painter);
  void paint_marks(QPainter& painter);
  void paint_cursor(QPainter& painter);
  QString time_text(double at_ps) const;
  QRectF mark_flag(const TimelineMark& mark) const;
  std::optional<QRectF> cursor_flag() const;
  std::optional<QRectF> pointer_flag() const;
  QRectF time_flag(double x, const QString& text) const;
  std::optional<std::pair<QRectF, QString>> area_flag() const;
  std::vector<QRectF> ruler_flags() const;
  void paint_slice_frame(QPainter& painter, SliceRef slice, const QColor& color, double width);
  std::optional<QRectF> rect_of(SliceRef slice) const;

  int top_of(const LayoutRow& row) const { return geometry_.plot.top() + row.y - scene_.scroll_y; }
  /// Curves of a row: one for each shown run.
  const StepCurve* curve_of(const LayoutRow& row, TimelineOrigin origin) const;
  double curve_scale(const LayoutRow& row) const;  ///< The value of the full height.

  const TimelineScene& scene_;
  QSize size_;
  PaintStyle style_;
  PaintCache& cache_;
  ThemeColors colors_;
  QFontMetricsF font_;
  ViewGeometry geometry_;
  TimeScale scale_;
  int columns_ = 1;  ///< Of the plot, in device pixels.
  // Of plain and of banded ranks.
  std::array<BarColors, 2> bar_colors_;
  std::array<std::vector<QRgb>, 2> ground_;
  std::array<QRgb, kBarClasses> label_colors_{};
  int strip_top_ = 0;       ///< Device line of the strip at hand.
  QRgb* target_ = nullptr;  ///< Pixel of the device at the left top of the view; null: unknown.
  ptrdiff_t target_stride_ = 0;
};

/// "KV 3", "to 1", "from 2": what stands in a bar; empty for other kinds.
QString bar_label(const Slice& slice);

}  // namespace ring::gui
