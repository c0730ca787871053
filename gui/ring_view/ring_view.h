// RingView: the machine drawn with its ranks in ring order, alive at the cursor of the timeline.
#pragma once

#include <QWidget>
#include <memory>
#include <optional>

#include "core/hop_activity.h"
#include "gui/paint/theme.h"
#include "gui/ring_view/ring_layout.h"
#include "sim/study.h"

namespace ring::gui {

/// What the colour of a hop says.
enum class HopColoring { kUtilization, kSlack };

class RingView : public QWidget {
  Q_OBJECT

 public:
  explicit RingView(QWidget* parent = nullptr);

  void set_study(std::shared_ptr<const Study> study);
  /// Slack is known once the reasons are; null before.
  void set_reasons(std::shared_ptr<const StudyReasons> reasons);
  void set_theme(Theme theme);
  void set_cursor_ps(Picoseconds at_ps);
  Picoseconds cursor_ps() const { return cursor_ps_; }
  void set_coloring(HopColoring coloring);
  HopColoring coloring() const { return coloring_; }

  /// Draws what the view shows into a picture of the given size.
  void render_to(QPainter& painter, QSize size, std::optional<Theme> theme = {}) const;
  /// Hops: from, to, bytes, busy share, slack in ps.
  std::string csv() const;
  /// What the picture says, for those who do not see it.
  QString description() const;

  QSize sizeHint() const override { return {700, 700}; }

 Q_SIGNALS:
  /// The user turned the wheel or pressed a key over the ring: the cursor should go there.
  void cursor_wanted(qint64 at_ps);

 protected:
  bool event(QEvent* event) override;
  void paintEvent(QPaintEvent* event) override;
  void wheelEvent(QWheelEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;

 private:
  struct Frame;

  void prepare();
  void draw_links(QPainter& painter, const Frame& frame) const;
  void draw_hops(QPainter& painter, const Frame& frame) const;
  void draw_nodes(QPainter& painter, const Frame& frame) const;
  void draw_ranks(QPainter& painter, const Frame& frame) const;
  void draw_legend(QPainter& painter, const Frame& frame) const;
  double hop_value(size_t hop) const;
  QString hop_text(size_t hop) const;

  std::shared_ptr<const Study> study_;
  std::shared_ptr<const StudyReasons> reasons_;
  std::unique_ptr<HopActivity> activity_;
  std::vector<Picoseconds> hop_slack_ps_;  ///< By hop, the least of its receives; -1 unknown.
  std::vector<double> link_share_;         ///< By link number, busy share.
  RingLayout layout_;
  Theme theme_ = Theme::kLight;
  HopColoring coloring_ = HopColoring::kUtilization;
  Picoseconds cursor_ps_ = 0;
};

}  // namespace ring::gui
