#include "gui/sweep/sweep_plot.h"

#include "gui/sweep/custom_plot.h"

#include <QKeyEvent>
#include <QToolTip>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>

#include "core/wording.h"
#include "gui/paint/text.h"
#include "sim/questions.h"

namespace ring::gui {

namespace {

/// Viridis at nine stops: even in lightness, and safe for any colour vision.
QCPColorGradient viridis(const QColor& nan) {
  constexpr const char* kStops[] = {"#440154", "#472d7b", "#3b528b", "#2c728e", "#21918c",
                                    "#28ae80", "#5ec962", "#addc30", "#fde725"};
  QCPColorGradient gradient;
  gradient.clearColorStops();
  for (int i = 0; i < 9; ++i) gradient.setColorStopAt(i / 8.0, QColor(kStops[i]));
  gradient.setNanHandling(QCPColorGradient::nhNanColor);
  gradient.setNanColor(nan);
  return gradient;
}

constexpr size_t kMostLevelNames = 5;
constexpr size_t kFewestTicks = 3, kMostTicks = 9;
/// Values that differ by less are of one colour: a share of the least, or of the run.
constexpr double kSameTime = 0.02, kSameShare = 0.02;

/// 1, 2 or 5 times a power of ten apart: a few between the ends.
std::vector<double> even_ticks_between(double low, double high) {
  std::vector<double> ticks;
  if (!(high > low)) return ticks;
  const double rough = (high - low) / 5;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  const double step = power * (rough <= 2 * power ? 2 : rough <= 5 * power ? 5 : 10);
  for (double at = std::ceil(low / step) * step; at <= high; at += step) ticks.push_back(at);
  return ticks;
}

/// 1, 2 and 5 times powers of ten; of many only 1 and 3, or 1.
std::vector<double> time_ticks_between(double low_s, double high_s) {
  std::vector<double> ticks;
  for (const auto& digits : {std::vector{1.0, 2.0, 5.0}, {1.0, 3.0}, {1.0}}) {
    ticks.clear();
    for (int exponent = -12; exponent <= 6; ++exponent) {
      for (const double digit : digits) {
        const double tick = digit * std::pow(10, exponent);
        if (tick >= low_s && tick <= high_s) ticks.push_back(tick);
      }
    }
    if (ticks.size() <= kMostTicks) break;
  }
  return ticks.size() < kFewestTicks ? even_ticks_between(low_s, high_s) : ticks;
}

/// Powers of two; of many every second, every third ...
std::vector<double> byte_ticks_between(double low_log2, double high_log2) {
  std::vector<double> ticks;
  const int first = static_cast<int>(std::ceil(low_log2));
  const int last = static_cast<int>(std::floor(high_log2));
  const int every = std::max(0, last - first) / static_cast<int>(kMostTicks) + 1;
  for (int exponent = first; exponent <= last; exponent += every) {
    ticks.push_back(std::exp2(exponent));
  }
  if (ticks.size() >= kFewestTicks) return ticks;
  return even_ticks_between(std::exp2(low_log2), std::exp2(high_log2));
}

/// A list of who waits for whom can be long; its beginning tells enough.
QString first_lines(const QString& text) {
  constexpr qsizetype kMostLines = 5;
  QStringList lines = text.split('\n');
  if (lines.size() <= kMostLines) return text;
  lines = lines.first(kMostLines - 1);
  lines.push_back(SweepPlot::tr("  and so on"));
  return lines.join('\n');
}

/// Every line cut to the width.
QString elided(const std::string& text, int width, const QFont& font) {
  const QFontMetrics metrics(font);
  QStringList lines = qt(text).split('\n');
  for (QString& line : lines) line = metrics.elidedText(line, Qt::ElideMiddle, width - 12);
  return lines.join('\n');
}

int depth_of(const CandidateResult& result) { return result.candidate.tuning.pipeline_depth; }

}  // namespace

QString title(SweepKind kind) {
  switch (kind) {
    case SweepKind::kBlockDepth:
      return SweepPlot::tr("block size × depth");
    case SweepKind::kSeqLen:
      return SweepPlot::tr("sequence length");
    case SweepKind::kRingSize:
      return SweepPlot::tr("ring size");
    case SweepKind::kStrategies:
      return SweepPlot::tr("strategies");
  }
  return {};
}

SweepPlot::SweepPlot(QWidget* parent) : QWidget(parent), plot_(new QCustomPlot(this)) {
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->addWidget(plot_);
  setFocusPolicy(Qt::StrongFocus);
  plot_->setFocusPolicy(Qt::NoFocus);
  plot_->setMouseTracking(true);
  plot_->installEventFilter(this);
  setAccessibleName(tr("Sweep"));
  setMinimumSize(240, 200);
  rebuild();
}

void SweepPlot::set_results(SweepResults results) {
  results_ = std::move(results);
  marked_.reset();
  if (current_ >= results_.points.size()) current_.reset();
  rebuild();
}

void SweepPlot::set_current(std::optional<size_t> point) {
  if (point && *point >= results_.points.size()) point.reset();
  if (point == current_) return;
  current_ = point;
  rebuild();
}

void SweepPlot::set_value(CandidateValue value) {
  value_ = value;
  rebuild();
}

void SweepPlot::set_theme(Theme theme) {
  theme_ = theme;
  rebuild();
}

bool SweepPlot::is_logarithmic() const {
  return value_ == CandidateValue::kTime || value_ == CandidateValue::kMemory;
}

double SweepPlot::plotted(double number) const {
  if (!is_logarithmic()) return number;
  return std::log2(std::max(number, 1e-15));
}

int SweepPlot::room() const { return picture_width_ > 0 ? picture_width_ : plot_->width(); }

void SweepPlot::rebuild() {
  plot_->clearPlottables();
  plot_->clearItems();
  plot_->legend->setVisible(false);
  place_points();
  apply_theme();
  show_caption();
  switch (results_.kind) {
    case SweepKind::kBlockDepth:
      build_heat_map();
      break;
    case SweepKind::kSeqLen:
    case SweepKind::kRingSize:
      build_lines();
      break;
    case SweepKind::kStrategies:
      build_bars();
      break;
  }
  outline_points();
  plot_->replot(QCustomPlot::rpQueuedReplot);
}

void SweepPlot::place_points() {
  places_.clear();
  for (size_t i = 0; i < results_.points.size(); ++i) {
    const CandidateResult& point = results_.points[i];
    const double number = value_of(point, value_).value_or(0);
    switch (results_.kind) {
      case SweepKind::kBlockDepth:
        places_.emplace_back(std::log2(point.candidate.x), depth_of(point));
        break;
      case SweepKind::kSeqLen:
      case SweepKind::kRingSize:
        places_.emplace_back(std::log2(point.candidate.x), plotted(number));
        break;
      case SweepKind::kStrategies:
        places_.emplace_back(static_cast<double>(i), number);
        break;
    }
  }
}

void SweepPlot::apply_theme() {
  const ThemeColors colors = colors_of(theme_);
  plot_->setBackground(colors.background);
  for (QCPAxis* axis : {plot_->xAxis, plot_->yAxis, plot_->xAxis2, plot_->yAxis2}) {
    axis->setBasePen(QPen(colors.separator));
    axis->setTickPen(QPen(colors.separator));
    axis->setSubTickPen(Qt::NoPen);
    axis->setLabelColor(colors.text);
    axis->setTickLabelColor(colors.text);
    axis->setLabelFont(font());
    axis->setTickLabelFont(font());
    axis->grid()->setPen(QPen(colors.grid));
    axis->grid()->setZeroLinePen(QPen(colors.grid));
    axis->setTicker(QSharedPointer<QCPAxisTicker>(new QCPAxisTicker));
    axis->setTickLabelRotation(0);
  }
  plot_->yAxis->setLabel({});
  plot_->xAxis->setLabel({});
}

void SweepPlot::show_caption() {
  if (results_.caption.empty()) return;
  auto* item = new QCPItemText(plot_);
  item->position->setType(QCPItemPosition::ptViewportRatio);
  item->position->setCoords(0.5, 0);
  item->setPositionAlignment(Qt::AlignHCenter | Qt::AlignTop);
  item->setText(elided(results_.caption, room(), font()));
  item->setColor(colors_of(theme_).faint);
  item->setFont(font());
  item->setPadding(QMargins(0, 5, 0, 0));
  item->setClipToAxisRect(false);
  plot_->axisRect()->setMinimumMargins(QMargins(15, 2 * fontMetrics().height() + 14, 15, 15));
}

/// Above a point, on the side of it that a line which falls, or rises, leaves free.
void SweepPlot::add_value(QPointF at, bool is_falling, const QString& text, const QColor& color) {
  QCPItemText* item = add_text(at.x(), at.y(), text, color);
  item->setPositionAlignment((is_falling ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignBottom);
  item->setPadding(QMargins(6, 0, 6, 6));
}

QCPItemText* SweepPlot::add_text(double x, double y, const QString& text, const QColor& color) {
  auto* item = new QCPItemText(plot_);
  item->position->setCoords(x, y);
  item->setText(text);
  item->setColor(color);
  item->setFont(font());
  item->setClipToAxisRect(false);
  return item;
}

/// The point of the scenario; and dotted, the one that the keys are at.
void SweepPlot::outline_points() {
  if (current_) outline(*current_, Qt::SolidLine);
  if (marked_ && marked_ != current_) outline(*marked_, Qt::DotLine);
}

void SweepPlot::outline(size_t point, Qt::PenStyle style) {
  const QPointF at = places_[point];
  const QPen pen(critical_color(), 2, style);
  if (results_.kind != SweepKind::kBlockDepth) {
    auto* square = new QCPItemTracer(plot_);
    square->position->setCoords(at);
    square->setStyle(QCPItemTracer::tsSquare);
    square->setSize(15);
    square->setPen(pen);
    square->setBrush(Qt::NoBrush);
    return;
  }
  auto* item = new QCPItemRect(plot_);
  item->topLeft->setCoords(at.x() - 0.48, at.y() + 0.48);
  item->bottomRight->setCoords(at.x() + 0.48, at.y() - 0.48);
  item->setPen(pen);
  item->setBrush(Qt::NoBrush);
}

void SweepPlot::build_heat_map() {
  const ThemeColors colors = colors_of(theme_);
  const auto& points = results_.points;
  if (points.empty()) return;
  double low_x = 1e300, high_x = -1e300;
  int low_y = depth_of(points.front()), high_y = low_y;
  for (size_t i = 0; i < points.size(); ++i) {
    low_x = std::min(low_x, places_[i].x());
    high_x = std::max(high_x, places_[i].x());
    low_y = std::min(low_y, depth_of(points[i]));
    high_y = std::max(high_y, depth_of(points[i]));
  }
  const int columns = static_cast<int>(std::lround(high_x - low_x)) + 1;
  const int rows = high_y - low_y + 1;
  auto* map = new QCPColorMap(plot_->xAxis, plot_->yAxis);
  map->data()->setSize(columns, rows);
  map->data()->setRange(QCPRange(low_x, low_x + columns - 1), QCPRange(low_y, high_y));
  map->setInterpolate(false);
  map->setTightBoundary(false);
  map->setGradient(viridis(colors.band));
  map->setAntialiased(false);
  map->data()->fill(std::nan(""));
  QSharedPointer<QCPAxisTickerText> blocks(new QCPAxisTickerText);
  QCPRange range;
  bool has_value = false;
  for (size_t i = 0; i < points.size(); ++i) {
    const int column = static_cast<int>(std::lround(places_[i].x() - low_x));
    blocks->addTick(low_x + column, qt(format_count(points[i].candidate.tuning.block_tokens)));
    const auto number = value_of(points[i], value_);
    if (!number) continue;
    map->data()->setCell(column, depth_of(points[i]) - low_y, *number);
    range = has_value ? QCPRange(std::min(range.lower, *number), std::max(range.upper, *number))
                      : QCPRange(*number, *number);
    has_value = true;
  }
  // Noise of the last digit must not look like a difference.
  const double least = value_ == CandidateValue::kTime || value_ == CandidateValue::kMemory
                           ? range.lower * kSameTime
                           : kSameShare;
  range.upper = std::max(range.upper, range.lower + std::max(least, 1e-9));
  map->setDataRange(range);
  plot_->xAxis->setTicker(blocks);
  QSharedPointer<QCPAxisTickerText> depths(new QCPAxisTickerText);
  for (int depth = low_y; depth <= high_y; ++depth) depths->addTick(depth, QString::number(depth));
  plot_->yAxis->setTicker(depths);
  plot_->xAxis->setLabel(tr("block size, tokens"));
  plot_->yAxis->setLabel(tr("pipeline depth, buffers"));
  plot_->xAxis->setRange(low_x - 0.5, low_x + columns - 0.5);
  plot_->yAxis->setRange(low_y - 0.5, high_y + 0.5);
  plot_->xAxis->grid()->setVisible(false);
  plot_->yAxis->grid()->setVisible(false);
  const auto best = best_of(points, value_);
  // Where numbers would cover each other, colours say enough; the rest is in the tooltips.
  const int margins = 6 * fontMetrics().height();
  const bool has_room =
      (room() - margins) / columns > fontMetrics().horizontalAdvance(tr("not possible")) * 3 / 4;
  for (size_t i = 0; i < points.size(); ++i) {
    const auto number = value_of(points[i], value_);
    QString text = number ? qt(value_text(value_, *number)) : QString();
    if (!number) text = points[i].point.error.empty() ? tr("…") : tr("not\npossible");
    if (number && !points[i].point.fits) text += tr("\ntoo large");
    if (number && value_ == CandidateValue::kExposedShare && *number <= kHidesBelow) {
      text += tr("\nhides");
    }
    if (!has_room) {
      text = best == i ? tr("★") : number ? QString() : tr("–");
    } else if (best == i) {
      text += tr("\n★ best");
    } else if (number && best && value_ == CandidateValue::kTime) {
      text += "\n" + qt(signed_percent(*number / *value_of(points[*best], value_) - 1));
    }
    const double share = number ? (*number - range.lower) / range.size() : 0;
    add_text(places_[i].x(), places_[i].y(), text,
             !number        ? colors.faint
             : share > 0.55 ? QColor(Qt::black)
                            : QColor(Qt::white));
  }
}

void SweepPlot::set_y_ticks(double low, double high) {
  QSharedPointer<QCPAxisTickerText> ticker(new QCPAxisTickerText);
  if (is_logarithmic()) {
    const bool is_time = value_ == CandidateValue::kTime;
    for (const double number : is_time ? time_ticks_between(std::exp2(low), std::exp2(high))
                                       : byte_ticks_between(low, high)) {
      ticker->addTick(plotted(number), qt(value_text(value_, number)));
    }
  } else {
    for (int percent = 0; percent <= 100; percent += 10) {
      if (high <= 0.3 || percent % 20 == 0) {
        ticker->addTick(percent / 100.0, QStringLiteral("%1 %").arg(percent));
      }
    }
  }
  plot_->yAxis->setTicker(ticker);
  plot_->yAxis->setRange(low, high);
}

void SweepPlot::build_lines() {
  const ThemeColors colors = colors_of(theme_);
  QVector<double> x, y, low, high;
  QSharedPointer<QCPAxisTickerText> ticker(new QCPAxisTickerText);
  double least = 1e300, most = -1e300;
  for (size_t i = 0; i < results_.points.size(); ++i) {
    const CandidateResult& point = results_.points[i];
    ticker->addTick(places_[i].x(), qt(format_count(static_cast<int64_t>(point.candidate.x))));
    const auto number = value_of(point, value_);
    if (!number) continue;
    x.push_back(places_[i].x());
    y.push_back(places_[i].y());
    const bool has_band = value_ == CandidateValue::kTime && point.spread.draws > 1;
    low.push_back(has_band ? plotted(seconds_from_picoseconds(point.spread.low_ps)) : y.back());
    high.push_back(has_band ? plotted(seconds_from_picoseconds(point.spread.high_ps)) : y.back());
    least = std::min(least, low.back());
    most = std::max(most, high.back());
  }
  plot_->xAxis->setTicker(ticker);
  plot_->xAxis->setLabel(results_.kind == SweepKind::kSeqLen ? tr("sequence length, tokens")
                                                             : tr("ranks in the ring"));
  plot_->yAxis->setLabel(qt(std::string(name(value_))));
  if (x.isEmpty()) return;
  QColor band = op_color(OpKind::kAttend);
  band.setAlpha(60);
  QCPGraph* lower = plot_->addGraph();
  lower->setData(x, low);
  lower->setPen(Qt::NoPen);
  QCPGraph* upper = plot_->addGraph();
  upper->setData(x, high);
  upper->setPen(Qt::NoPen);
  upper->setBrush(band);
  upper->setChannelFillGraph(lower);
  QCPGraph* line = plot_->addGraph();
  line->setData(x, y);
  line->setPen(QPen(op_color(OpKind::kAttend), 2));
  line->setScatterStyle(QCPScatterStyle(QCPScatterStyle::ssDisc, op_color(OpKind::kAttend), 7));
  const double pad = is_logarithmic() ? std::max(0.3, (most - least) * 0.08) : 0.02;
  set_y_ticks(is_logarithmic() ? least - pad : 0, is_logarithmic() ? most + pad : most * 1.1 + pad);
  const auto ends = std::minmax_element(places_.begin(), places_.end(),
                                        [](QPointF a, QPointF b) { return a.x() < b.x(); });
  // Room for the value beside the outermost point.
  const bool is_rising = y.back() >= y.front();
  plot_->xAxis->setRange(ends.first->x() - (is_rising ? 0.8 : 0.4),
                         ends.second->x() + (is_rising ? 0.4 : 0.8));
  plot_->xAxis->grid()->setVisible(true);
  plot_->yAxis->grid()->setVisible(true);
  for (size_t i = 0; i < results_.points.size(); ++i) {
    if (!results_.points[i].point.is_done) {
      places_[i].setY(plot_->yAxis->range().lower);
      add_text(places_[i].x(), plot_->yAxis->range().center(), tr("not\npossible"), colors.faint);
    } else if (const auto number = value_of(results_.points[i], value_)) {
      add_value(places_[i], y.back() < y.front(), qt(value_text(value_, *number)), colors.text);
    }
  }
}

void SweepPlot::build_bars() {
  const ThemeColors colors = colors_of(theme_);
  auto* bars = new QCPBars(plot_->xAxis, plot_->yAxis);
  bars->setBrush(op_color(OpKind::kAttend));
  bars->setPen(QPen(op_color(OpKind::kAttend).darker(130)));
  bars->setWidth(0.6);
  auto* errors = new QCPErrorBars(plot_->xAxis, plot_->yAxis);
  errors->removeFromLegend();
  errors->setDataPlottable(bars);
  errors->setPen(QPen(colors.text, 1.5));
  QVector<double> x, y, minus, plus;
  QSharedPointer<QCPAxisTickerText> ticker(new QCPAxisTickerText);
  double most = 0;
  bool has_errors = false;  // Without noise there is no interval.
  for (size_t i = 0; i < results_.points.size(); ++i) {
    const CandidateResult& point = results_.points[i];
    ticker->addTick(places_[i].x(), qt(point.candidate.tuning.strategy));
    const auto number = value_of(point, value_);
    if (!number) continue;
    const bool has_band = value_ == CandidateValue::kTime && point.spread.draws > 1;
    x.push_back(places_[i].x());
    y.push_back(*number);
    minus.push_back(has_band ? *number - seconds_from_picoseconds(point.spread.low_ps) : 0);
    plus.push_back(has_band ? seconds_from_picoseconds(point.spread.high_ps) - *number : 0);
    has_errors = has_errors || minus.back() > 0 || plus.back() > 0;
    most = std::max(most, *number + plus.back());
  }
  bars->setData(x, y);
  if (has_errors) errors->setData(minus, plus);
  plot_->xAxis->setTicker(ticker);
  // Long names side by side would cover each other.
  if (results_.points.size() > kMostLevelNames) plot_->xAxis->setTickLabelRotation(25);
  plot_->xAxis->setRange(-0.6, static_cast<double>(results_.points.size()) - 0.4);
  plot_->xAxis->grid()->setVisible(false);
  plot_->yAxis->grid()->setVisible(true);
  plot_->yAxis->setLabel(qt(std::string(name(value_))));
  const double top = most > 0 ? most * 1.18 : 1;
  plot_->yAxis->setRange(0, top);
  QSharedPointer<QCPAxisTickerText> values(new QCPAxisTickerText);
  const double step = std::pow(10, std::floor(std::log10(top / 2)));
  const double wide = top / step > 10 ? 5 * step : top / step > 5 ? 2 * step : step;
  for (double at = 0; at <= top; at += wide) {
    values->addTick(at, at == 0 ? QStringLiteral("0") : qt(value_text(value_, at)));
  }
  plot_->yAxis->setTicker(values);
  const auto best = best_of(results_.points, value_);
  for (size_t i = 0; i < results_.points.size(); ++i) {
    const auto number = value_of(results_.points[i], value_);
    QString text = number ? qt(value_text(value_, *number)) : tr("not possible");
    if (best == i) text += tr(" ★");
    if (!results_.points[i].is_exact) text = tr("not exact\n") + text;
    add_text(places_[i].x(), (number ? *number : 0) + top * 0.035, text,
             number ? colors.text : colors.faint);
  }
}

void SweepPlot::draw_on(QPaintDevice& device, QSize size, bool is_vector,
                        std::optional<Theme> theme) {
  const Theme before = theme_;
  if (theme && *theme != theme_) set_theme(*theme);
  picture_width_ = size.width();
  rebuild();
  plot_->replot(QCustomPlot::rpImmediateRefresh);
  QCPPainter painter;
  if (painter.begin(&device)) {
    painter.setMode(QCPPainter::pmVectorized, is_vector);
    painter.setMode(QCPPainter::pmNoCaching, true);
    painter.fillRect(QRect(QPoint(), size), colors_of(theme_).background);
    plot_->toPainter(&painter, size.width(), size.height());
    painter.end();
  }
  picture_width_ = 0;
  set_theme(before);
}

QPointF SweepPlot::position_of(size_t point) const {
  return plot_->mapTo(this, QPointF(plot_->xAxis->coordToPixel(places_[point].x()),
                                    plot_->yAxis->coordToPixel(places_[point].y())));
}

std::optional<size_t> SweepPlot::point_at(QPointF position) const {
  const QPointF at = plot_->mapFrom(this, position);
  const double x = plot_->xAxis->pixelToCoord(at.x()), y = plot_->yAxis->pixelToCoord(at.y());
  std::optional<size_t> nearest;
  double least = 0.5;
  for (size_t i = 0; i < places_.size(); ++i) {
    const double across = std::abs(places_[i].x() - x);
    const bool is_cell = results_.kind == SweepKind::kBlockDepth;
    if (is_cell && std::abs(places_[i].y() - y) > 0.5) continue;
    if (across > least) continue;
    least = across;
    nearest = i;
  }
  return nearest;
}

QString SweepPlot::point_text(size_t point) const {
  const CandidateResult& result = results_.points[point];
  QString text = qt(describe(result.candidate.tuning));
  if (!result.point.is_done) return text + "\n" + first_lines(qt(result.point.error));
  for (const CandidateValue value : kCandidateValues) {
    text += QStringLiteral("\n%1: %2")
                .arg(qt(std::string(name(value))), qt(value_text(value, *value_of(result, value))));
  }
  return text;
}

void SweepPlot::mark(std::optional<size_t> point) {
  marked_ = point;
  if (point) setAccessibleDescription(point_text(*point));
  rebuild();
}

bool SweepPlot::eventFilter(QObject* watched, QEvent* event) {
  if (watched != plot_) return QWidget::eventFilter(watched, event);
  if (event->type() == QEvent::Resize) {
    rebuild();
    return false;
  }
  if (event->type() == QEvent::MouseButtonPress) {
    setFocus(Qt::MouseFocusReason);
    const auto* mouse = static_cast<QMouseEvent*>(event);
    if (mouse->button() != Qt::LeftButton) return false;
    if (const auto point = point_at(plot_->mapTo(this, mouse->position()))) {
      mark(point);
      Q_EMIT point_chosen(*point);
    }
    return true;
  }
  if (event->type() == QEvent::ToolTip) {
    const auto* help = static_cast<QHelpEvent*>(event);
    const auto point = point_at(plot_->mapTo(this, QPointF(help->pos())));
    if (point) QToolTip::showText(help->globalPos(), point_text(*point), plot_);
    return true;
  }
  return false;
}

void SweepPlot::keyPressEvent(QKeyEvent* event) {
  if (places_.empty()) return QWidget::keyPressEvent(event);
  if (event->key() == Qt::Key_Return || event->key() == Qt::Key_Enter) {
    if (marked_) Q_EMIT point_chosen(*marked_);
    return;
  }
  const std::map<int, QPointF> steps = {{Qt::Key_Left, {-1, 0}},
                                        {Qt::Key_Right, {1, 0}},
                                        {Qt::Key_Up, {0, 1}},
                                        {Qt::Key_Down, {0, -1}}};
  const auto step = steps.find(event->key());
  if (step == steps.end()) return QWidget::keyPressEvent(event);
  if (!marked_) return mark(0);
  // The nearest point in that direction.
  std::optional<size_t> nearest;
  double least = 1e300;
  for (size_t i = 0; i < places_.size(); ++i) {
    const QPointF way = places_[i] - places_[*marked_];
    const double along = QPointF::dotProduct(way, step->second);
    const double across =
        std::abs(way.x() * step->second.y()) + std::abs(way.y() * step->second.x());
    const double cost = along + 10 * (results_.kind == SweepKind::kBlockDepth ? across : 0);
    if (along < 0.1 || cost >= least) continue;
    least = cost;
    nearest = i;
  }
  if (nearest) mark(nearest);
}

}  // namespace ring::gui
