// SweepPlot: the results of a sweep as a heat map, as lines with bands, or as bars.
#pragma once

#include <QWidget>
#include <map>
#include <optional>
#include <vector>

#include "gui/paint/theme.h"
#include "sim/candidates.h"

class QCPItemText;
class QCustomPlot;
class QPaintDevice;

namespace ring::gui {

enum class SweepKind { kBlockDepth, kSeqLen, kRingSize, kStrategies };
inline constexpr SweepKind kSweepKinds[] = {SweepKind::kBlockDepth, SweepKind::kSeqLen,
                                            SweepKind::kRingSize, SweepKind::kStrategies};
QString title(SweepKind kind);

struct SweepResults {
  SweepKind kind = SweepKind::kBlockDepth;
  std::string caption;  ///< What was swept, in words.
  std::vector<CandidateResult> points;
};

/// A point is chosen by a click, or by the arrow keys and Return.
class SweepPlot : public QWidget {
  Q_OBJECT

 public:
  explicit SweepPlot(QWidget* parent = nullptr);

  void set_results(SweepResults results);
  const SweepResults& results() const { return results_; }
  void set_value(CandidateValue value);
  CandidateValue value() const { return value_; }
  /// The point that the scenario is at now, if any.
  void set_current(std::optional<size_t> point);
  std::optional<size_t> current() const { return current_; }
  void set_theme(Theme theme);

  /// Draws what is shown onto a picture, an SVG or a PDF of the given size.
  void draw_on(QPaintDevice& device, QSize size, bool is_vector, std::optional<Theme> theme = {});
  /// The point under a position of this widget.
  std::optional<size_t> point_at(QPointF position) const;
  /// Where a point stands on this widget.
  QPointF position_of(size_t point) const;
  std::optional<size_t> marked() const { return marked_; }

 Q_SIGNALS:
  void point_chosen(size_t point);

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;

 private:
  void rebuild();
  int room() const;
  void build_heat_map();
  void build_lines();
  void build_bars();
  void apply_theme();
  void show_caption();
  QCPItemText* add_text(double x, double y, const QString& text, const QColor& color);
  void add_value(QPointF at, bool is_falling, const QString& text, const QColor& color);
  void outline(size_t point, Qt::PenStyle style);
  void outline_points();
  void set_y_ticks(double low, double high);
  double plotted(double number) const;
  bool is_logarithmic() const;
  void place_points();
  QString point_text(size_t point) const;
  void mark(std::optional<size_t> point);

  SweepResults results_;
  CandidateValue value_ = CandidateValue::kTime;
  Theme theme_ = Theme::kLight;
  QCustomPlot* plot_;
  std::vector<QPointF> places_;  ///< Of every point, in the coordinates of the plot.
  std::optional<size_t> current_, marked_;
  int picture_width_ = 0;  ///< Of the picture that is drawn; 0: the widget.
};

}  // namespace ring::gui
