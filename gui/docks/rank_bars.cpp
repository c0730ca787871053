#include "gui/docks/rank_bars.h"

#include <QPainter>
#include <algorithm>

namespace ring::gui {

namespace {

constexpr int kMostRanks = 16;

double share(Picoseconds part_ps, Picoseconds whole_ps) {
  return whole_ps > 0 ? static_cast<double>(part_ps) / static_cast<double>(whole_ps) : 0;
}

}  // namespace

RankBars::RankBars(QWidget* parent) : QWidget(parent) {
  setAccessibleName(tr("Balance of the ranks"));
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
}

void RankBars::set_metrics(const Metrics& metrics) {
  metrics_ = metrics;
  QString text;
  for (int rank = 0; rank < shown_ranks(); ++rank) {
    const RankMetrics& row = metrics_.ranks[static_cast<size_t>(rank)];
    text +=
        tr("rank %1 computes %2 % of the time. ").arg(rank).arg(row.busy_share * 100, 0, 'f', 0);
  }
  setAccessibleDescription(text);
  setToolTip(
      tr("Blue: computing. Orange: communication that nothing covers. Grey: standing still."));
  updateGeometry();
  update();
}

void RankBars::set_theme(Theme theme) {
  theme_ = theme;
  update();
}

int RankBars::row_height() const { return fontMetrics().height() + 2; }

int RankBars::shown_ranks() const {
  return std::min(kMostRanks, static_cast<int>(metrics_.ranks.size()));
}

QSize RankBars::sizeHint() const {
  const bool is_cut = static_cast<int>(metrics_.ranks.size()) > shown_ranks();
  const int legend = shown_ranks() > 0 ? 1 : 0;
  return {240, (shown_ranks() + (is_cut ? 1 : 0) + legend) * row_height()};
}

QSize RankBars::minimumSizeHint() const { return {140, sizeHint().height()}; }

void RankBars::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  const ThemeColors colors = colors_of(theme_);
  const int name_width = fontMetrics().horizontalAdvance(QStringLiteral("r88 "));
  const int percent_width = fontMetrics().horizontalAdvance(QStringLiteral(" 100 %"));
  const int width = std::max(10, this->width() - name_width - percent_width);
  for (int rank = 0; rank < shown_ranks(); ++rank) {
    const RankMetrics& row = metrics_.ranks[static_cast<size_t>(rank)];
    const int y = rank * row_height();
    painter.setPen(colors.text);
    painter.drawText(QRect(0, y, name_width, row_height()), Qt::AlignVCenter,
                     QStringLiteral("r%1").arg(rank));
    painter.drawText(QRect(name_width + width, y, percent_width, row_height()),
                     Qt::AlignVCenter | Qt::AlignRight,
                     QStringLiteral("%1 %").arg(row.busy_share * 100, 0, 'f', 0));
    const QRectF bar(name_width, y + 2, width, row_height() - 5);
    painter.fillRect(bar, blended(colors.background, wait_color(), 0.35));
    const double busy = share(row.compute_ps, metrics_.makespan_ps);
    const double exposed = share(row.exposed_ps, metrics_.makespan_ps);
    QRectF part = bar;
    part.setWidth(bar.width() * busy);
    painter.fillRect(part, op_color(OpKind::kAttend));
    part.moveLeft(part.right());
    part.setWidth(bar.width() * std::min(exposed, 1 - busy));
    painter.fillRect(part, op_color(OpKind::kSend));
  }
  if (shown_ranks() > 0) paint_legend(painter, colors);
  const auto hidden = static_cast<int>(metrics_.ranks.size()) - shown_ranks();
  if (hidden > 0) {
    painter.setPen(colors.faint);
    painter.drawText(QRect(0, shown_ranks() * row_height(), this->width(), row_height()),
                     Qt::AlignVCenter, tr("and %1 more ranks").arg(hidden));
  }
}

/// What the colours mean, below everything else.
void RankBars::paint_legend(QPainter& painter, const ThemeColors& colors) const {
  const int y = height() - row_height();
  int x = 0;
  const auto add = [&](const QColor& color, const QString& text) {
    const int side = fontMetrics().ascent() - 1;
    painter.fillRect(QRect(x, y + (row_height() - side) / 2, side, side), color);
    painter.setPen(colors.faint);
    const int width = fontMetrics().horizontalAdvance(text);
    painter.drawText(QRect(x + side + 4, y, width + 1, row_height()), Qt::AlignVCenter, text);
    x += side + 4 + width + 10;
  };
  add(op_color(OpKind::kAttend), tr("computing"));
  add(op_color(OpKind::kSend), tr("exposed messages"));
  add(blended(colors.background, wait_color(), 0.35), tr("idle"));
}

}  // namespace ring::gui
