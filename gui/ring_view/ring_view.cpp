#include "gui/ring_view/ring_view.h"

#include <fmt/format.h>

#include <QHelpEvent>
#include <QKeyEvent>
#include <QPainter>
#include <QPainterPath>
#include <QToolTip>
#include <algorithm>
#include <cmath>
#include <map>

#include "core/wording.h"
#include "gui/paint/text.h"

namespace ring::gui {

namespace {

constexpr double kCursorSteps = 200;  ///< Steps of the wheel from start to end of the run.
/// A legend on one line has no room in less.
constexpr int kLegendCharacters = 74;
constexpr int kMostLabels = 64;  ///< With more ranks, numbers would cover each other.

/// Grey over orange to vermilion: readable with any colour vision, and by width as well.
QColor heat(double value) {
  const double v = std::clamp(value, 0.0, 1.0);
  const QColor cold(0x9A, 0xA8, 0xB8), warm(0xE6, 0x9F, 0x00), hot(0xD5, 0x5E, 0x00);
  return v < 0.5 ? blended(cold, warm, v * 2) : blended(warm, hot, v * 2 - 1);
}

QString short_name(NodeKind kind) {
  switch (kind) {
    case NodeKind::kCore:
      return QStringLiteral("core");
    case NodeKind::kGpu:
      return QStringLiteral("GPU");
    case NodeKind::kSwitch:
      return QStringLiteral("switch");
    case NodeKind::kPcieSwitch:
      return QStringLiteral("PCIe");
    case NodeKind::kNic:
      return QStringLiteral("NIC");
    case NodeKind::kHost:
      return QStringLiteral("host");
  }
  return {};
}

bool is_processor(NodeKind kind) { return kind == NodeKind::kCore || kind == NodeKind::kGpu; }

}  // namespace

/// The square that the picture is drawn in, and its colours.
struct RingView::Frame {
  QRectF square;
  QSize size;
  ThemeColors colors;
  double text_height = 12;

  Frame(QSize picture, Theme theme, const QFontMetrics& metrics)
      : size(picture), colors(colors_of(theme)), text_height(metrics.height()) {
    const bool is_narrow = size.width() < kLegendCharacters * metrics.averageCharWidth();
    const double top = text_height * (is_narrow ? 4.4 : 3.2);
    const double side = std::max(50.0, std::min<double>(size.width(), size.height() - top - 8));
    square = QRectF((size.width() - side) / 2, top, side, side);
  }
  QPointF at(QPointF unit) const {
    return {square.left() + unit.x() * square.width(), square.top() + unit.y() * square.height()};
  }
};

RingView::RingView(QWidget* parent) : QWidget(parent) {
  setAccessibleName(tr("Ring"));
  setFocusPolicy(Qt::StrongFocus);
  setMinimumSize(260, 260);
}

void RingView::set_study(std::shared_ptr<const Study> study) {
  study_ = std::move(study);
  reasons_.reset();
  prepare();
}

void RingView::set_reasons(std::shared_ptr<const StudyReasons> reasons) {
  reasons_ = std::move(reasons);
  hop_slack_ps_.clear();
  if (activity_ && reasons_) hop_slack_ps_ = activity_->least_slack_ps(reasons_->why.slack_ps);
  update();
}

void RingView::prepare() {
  hop_slack_ps_.clear();
  link_share_.clear();
  activity_.reset();
  layout_ = {};
  if (study_) {
    const Machine& machine = study_->plan->machine;
    activity_ = std::make_unique<HopActivity>(study_->result.timeline);
    layout_ = lay_out_ring(machine, study_->plan->program.ranks());
    link_share_.assign(machine.topology.links().size(), 0);
    for (const LinkUse& use : study_->result.links) {
      link_share_[static_cast<size_t>(use.link)] = use.busy_share;
    }
  }
  setAccessibleDescription(description());
  update();
}

void RingView::set_theme(Theme theme) {
  theme_ = theme;
  update();
}

void RingView::set_cursor_ps(Picoseconds at_ps) {
  if (at_ps == cursor_ps_) return;
  cursor_ps_ = at_ps;
  update();
}

void RingView::set_coloring(HopColoring coloring) {
  coloring_ = coloring;
  update();
}

double RingView::hop_value(size_t hop) const {
  if (coloring_ == HopColoring::kUtilization) return activity_->hops()[hop].busy_share;
  if (hop >= hop_slack_ps_.size() || hop_slack_ps_[hop] < 0) return 0;
  const double whole = static_cast<double>(std::max<Picoseconds>(1, study_->result.makespan_ps));
  // A tenth of the run to spare counts as ample.
  return 1 - std::min(1.0, 10 * static_cast<double>(hop_slack_ps_[hop]) / whole);
}

QString RingView::hop_text(size_t hop) const {
  const Hop& of = activity_->hops()[hop];
  QString text = tr("%1 → %2: %3, busy %4 of the time")
                     .arg(of.from)
                     .arg(of.to)
                     .arg(qt(format_bytes(of.bytes)), qt(format_percent(of.busy_share)));
  if (hop < hop_slack_ps_.size() && hop_slack_ps_[hop] >= 0) {
    text += tr(", slack %1").arg(qt(duration_text(hop_slack_ps_[hop])));
  }
  return text;
}

QString RingView::description() const {
  if (!activity_) return tr("No prediction yet");
  QString text;
  for (size_t hop = 0; hop < std::min<size_t>(activity_->hops().size(), 32); ++hop) {
    text += hop_text(hop) + QStringLiteral("\n");
  }
  return text;
}

std::string RingView::csv() const {
  std::string text = "from,to,bytes,busy_ps,busy_share,slack_ps\n";
  if (!activity_) return text;
  for (size_t hop = 0; hop < activity_->hops().size(); ++hop) {
    const Hop& of = activity_->hops()[hop];
    const bool has_slack = hop < hop_slack_ps_.size() && hop_slack_ps_[hop] >= 0;
    text += fmt::format("{},{},{},{},{},{}\n", of.from, of.to, of.bytes, of.busy_ps, of.busy_share,
                        has_slack ? std::to_string(hop_slack_ps_[hop]) : "");
  }
  return text;
}

void RingView::render_to(QPainter& painter, QSize size, std::optional<Theme> theme) const {
  const Frame frame(size, theme.value_or(theme_), fontMetrics());
  painter.setFont(font());
  painter.fillRect(QRect(QPoint(), size), frame.colors.background);
  painter.setRenderHint(QPainter::Antialiasing);
  if (!activity_) {
    painter.setPen(frame.colors.faint);
    painter.drawText(QRect(QPoint(), size), Qt::AlignCenter, tr("no prediction yet"));
    return;
  }
  draw_links(painter, frame);
  draw_hops(painter, frame);
  draw_nodes(painter, frame);
  draw_ranks(painter, frame);
  draw_legend(painter, frame);
}

void RingView::draw_links(QPainter& painter, const Frame& frame) const {
  const auto& links = study_->plan->machine.topology.links();
  std::map<std::pair<int, int>, double> busiest;
  for (size_t i = 0; i < links.size(); ++i) {
    const auto ends = std::minmax(links[i].from, links[i].to);
    double& share = busiest[{ends.first, ends.second}];
    share = std::max(share, link_share_[i]);
  }
  for (const PlacedLink& link : layout_.links) {
    const double share = busiest[{link.a, link.b}];
    const QColor color =
        share > 0 ? blended(frame.colors.separator, heat(share), 0.6) : frame.colors.grid;
    painter.setPen(QPen(color, share > 0 ? 1.5 + 3 * share : 1));
    painter.drawLine(frame.at(layout_.nodes[static_cast<size_t>(link.a)].at),
                     frame.at(layout_.nodes[static_cast<size_t>(link.b)].at));
  }
  if (!layout_.shares_processors) return;
  painter.setPen(QPen(frame.colors.faint, 1, Qt::DotLine));
  for (size_t rank = 0; rank < layout_.ranks.size(); ++rank) {
    const int node = processor_of(study_->plan->machine, static_cast<int>(rank));
    painter.drawLine(frame.at(layout_.ranks[rank]),
                     frame.at(layout_.nodes[static_cast<size_t>(node)].at));
  }
}

void RingView::draw_hops(QPainter& painter, const Frame& frame) const {
  const double radius = layout_.rank_radius * frame.square.width();
  std::vector<QPainterPath> paths;
  for (size_t hop = 0; hop < activity_->hops().size(); ++hop) {
    const Hop& of = activity_->hops()[hop];
    const QPointF from = frame.at(layout_.ranks[static_cast<size_t>(of.from)]);
    const QPointF to = frame.at(layout_.ranks[static_cast<size_t>(of.to)]);
    const QPointF middle = (from + to) / 2;
    const QPointF out = middle - frame.square.center();
    const double length = std::max(1.0, std::hypot(out.x(), out.y()));
    const double bulge = std::min(frame.square.width() * 0.07,
                                  std::hypot(to.x() - from.x(), to.y() - from.y()) * 0.35);
    QPainterPath path(from);
    path.quadTo(middle + out / length * bulge, to);
    paths.push_back(path);
    const double value = hop_value(hop);
    painter.setBrush(Qt::NoBrush);
    painter.setPen(QPen(heat(value), 2 + 5 * value));
    painter.drawPath(path);
    const double cut = path.length() > 0 ? std::max(0.0, 1 - 1.2 * radius / path.length()) : 0;
    const QPointF tip = path.pointAtPercent(cut);
    const double angle = -path.angleAtPercent(cut) * std::acos(-1.0) / 180;
    const QPointF along(std::cos(angle), std::sin(angle)), across(-along.y(), along.x());
    const double head = 5 + 3 * value;
    painter.setBrush(heat(value));
    painter.setPen(Qt::NoPen);
    painter.drawPolygon(QPolygonF{tip, tip - along * head + across * head * 0.6,
                                  tip - along * head - across * head * 0.6});
  }
  for (const HopTransfer& transfer : activity_->at(cursor_ps_)) {
    const QPointF at = paths[transfer.hop].pointAtPercent(std::clamp(transfer.done, 0.0, 1.0));
    painter.setBrush(op_color(OpKind::kReceive));
    painter.setPen(QPen(frame.colors.background, 1.5));
    painter.drawEllipse(at, 6, 6);
  }
}

void RingView::draw_nodes(QPainter& painter, const Frame& frame) const {
  const auto& nodes = study_->plan->machine.topology.nodes();
  for (const PlacedNode& placed : layout_.nodes) {
    const Node& node = nodes[static_cast<size_t>(placed.node)];
    if (is_processor(node.kind) && !layout_.shares_processors) continue;
    const QPointF at = frame.at(placed.at);
    const QString name = is_processor(node.kind) ? qt(node.name) : short_name(node.kind);
    const double width = painter.fontMetrics().horizontalAdvance(name) + 8;
    const bool is_crowded = nodes.size() > 160;
    painter.setPen(QPen(frame.colors.separator, 1));
    painter.setBrush(frame.colors.panel);
    if (is_crowded) {
      painter.drawRect(QRectF(at.x() - 2, at.y() - 2, 4, 4));
      continue;
    }
    const QRectF box(at.x() - width / 2, at.y() - frame.text_height / 2 - 1, width,
                     frame.text_height + 2);
    painter.drawRoundedRect(box, 3, 3);
    painter.setPen(frame.colors.faint);
    painter.drawText(box, Qt::AlignCenter, name);
  }
}

void RingView::draw_ranks(QPainter& painter, const Frame& frame) const {
  const std::vector<bool> computing = activity_->computing_at(cursor_ps_);
  const double radius = std::max(4.0, layout_.rank_radius * frame.square.width());
  const auto& ranks = layout_.ranks;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    const QPointF at = frame.at(ranks[rank]);
    const bool is_busy = computing[rank];
    const QColor fill = is_busy ? op_color(OpKind::kAttend) : frame.colors.panel;
    painter.setBrush(fill);
    // Standing still is an open ring too, so that colour is not the only cue.
    painter.setPen(
        QPen(is_busy ? op_color(OpKind::kAttend).darker(130) : wait_color(), is_busy ? 1.5 : 2.5));
    painter.drawEllipse(at, radius, radius);
    if (ranks.size() > kMostLabels) continue;
    painter.setPen(is_busy ? readable_on(fill) : frame.colors.text);
    painter.drawText(QRectF(at.x() - radius, at.y() - radius, 2 * radius, 2 * radius),
                     Qt::AlignCenter, QString::number(rank));
  }
}

void RingView::draw_legend(QPainter& painter, const Frame& frame) const {
  const QFontMetrics metrics = painter.fontMetrics();
  painter.setPen(frame.colors.text);
  const QString title =
      tr("%1 at %2").arg(qt(study_->plan->machine.name), qt(duration_text(cursor_ps_)));
  painter.drawText(QPointF(8, metrics.ascent() + 6), title);
  const bool is_use = coloring_ == HopColoring::kUtilization;
  const QString low = is_use ? tr("hop idle") : tr("ample slack");
  const QString high = is_use ? tr("always busy") : tr("no slack");
  double x = 8;
  double y = metrics.height() + 12;
  painter.setPen(frame.colors.faint);
  const auto say = [&](const QString& text) {
    painter.setPen(frame.colors.faint);
    painter.drawText(QPointF(x, y + metrics.ascent()), text);
    x += metrics.horizontalAdvance(text) + 6;
  };
  say(low);
  for (int i = 0; i < 60; ++i) {
    painter.fillRect(QRectF(x + i, y + 2, 1.5, metrics.height() - 4), heat(i / 59.0));
  }
  x += 68;
  say(high);
  x += 12;
  if (frame.size.width() < kLegendCharacters * metrics.averageCharWidth()) {
    x = 8;
    y += metrics.height() + 3;
  }
  const auto sample = [&](const QColor& fill, const QColor& edge, const QString& text) {
    painter.setBrush(fill);
    painter.setPen(QPen(edge, 2));
    painter.drawEllipse(QPointF(x + 5, y + metrics.height() / 2.0), 5, 5);
    x += 16;
    say(text);
    x += 6;
  };
  sample(op_color(OpKind::kAttend), op_color(OpKind::kAttend).darker(130), tr("computing"));
  sample(frame.colors.panel, wait_color(), tr("standing still"));
  sample(op_color(OpKind::kReceive), frame.colors.background, tr("message"));
}

bool RingView::event(QEvent* event) {
  if (event->type() != QEvent::ToolTip || !activity_) return QWidget::event(event);
  const auto* help = static_cast<QHelpEvent*>(event);
  const Frame frame(size(), theme_, fontMetrics());
  QString text;
  for (size_t rank = 0; rank < layout_.ranks.size(); ++rank) {
    const QPointF away = frame.at(layout_.ranks[rank]) - help->pos();
    if (std::hypot(away.x(), away.y()) > layout_.rank_radius * frame.square.width()) continue;
    text = tr("rank %1 on %2")
               .arg(rank)
               .arg(qt(study_->plan->machine.topology
                           .nodes()[static_cast<size_t>(
                               processor_of(study_->plan->machine, static_cast<int>(rank)))]
                           .name));
    for (size_t hop = 0; hop < activity_->hops().size(); ++hop) {
      const Hop& of = activity_->hops()[hop];
      if (of.from == static_cast<int>(rank)) text += QStringLiteral("\n") + hop_text(hop);
    }
  }
  if (text.isEmpty()) {
    QToolTip::hideText();
  } else {
    QToolTip::showText(help->globalPos(), text, this);
  }
  return true;
}

void RingView::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  render_to(painter, size());
}

void RingView::wheelEvent(QWheelEvent* event) {
  if (!study_) return;
  const double steps = event->angleDelta().y() / 120.0;
  const double move = steps * static_cast<double>(study_->result.makespan_ps) / kCursorSteps;
  Q_EMIT cursor_wanted(
      std::clamp<qint64>(cursor_ps_ + static_cast<qint64>(move), 0, study_->result.makespan_ps));
}

void RingView::keyPressEvent(QKeyEvent* event) {
  const bool is_left = event->key() == Qt::Key_Left, is_right = event->key() == Qt::Key_Right;
  if (!study_ || (!is_left && !is_right)) return QWidget::keyPressEvent(event);
  const auto step =
      static_cast<qint64>(static_cast<double>(study_->result.makespan_ps) / kCursorSteps);
  Q_EMIT cursor_wanted(
      std::clamp<qint64>(cursor_ps_ + (is_left ? -step : step), 0, study_->result.makespan_ps));
}

}  // namespace ring::gui
