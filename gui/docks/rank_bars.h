// RankBars: how each rank spends the run, one bar a rank: computing, exposed, standing still.
#pragma once

#include <QWidget>
#include <vector>

#include "core/metrics.h"
#include "gui/paint/theme.h"

class QPainter;

namespace ring::gui {

class RankBars : public QWidget {
  Q_OBJECT

 public:
  explicit RankBars(QWidget* parent = nullptr);

  void set_metrics(const Metrics& metrics);
  void set_theme(Theme theme);

  QSize sizeHint() const override;
  QSize minimumSizeHint() const override;

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  void paint_legend(QPainter& painter, const ThemeColors& colors) const;
  int row_height() const;
  int shown_ranks() const;

  Metrics metrics_;
  Theme theme_ = Theme::kLight;
};

}  // namespace ring::gui
