#include "gui/docks/slider_box.h"

#include <QFontMetrics>
#include <QHBoxLayout>
#include <QKeyEvent>
#include <QLabel>
#include <QLineEdit>
#include <QSignalBlocker>
#include <QSlider>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "gui/docks/wheel_guard.h"

namespace ring::gui {

namespace {

constexpr int kBoxCharacters = 9;

}  // namespace

SliderBox::SliderBox(SliderBoxText text, QWidget* parent)
    : QWidget(parent),
      text_(std::move(text)),
      label_(new QLabel(text_.label, this)),
      slider_(new QSlider(Qt::Horizontal, this)),
      box_(new QLineEdit(this)) {
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(1);
  auto* row = new QHBoxLayout;
  row->addWidget(label_);
  row->addStretch(1);
  row->addWidget(box_);
  auto* unit = new QLabel(text_.unit, this);
  unit->setMinimumWidth(QFontMetrics(font()).horizontalAdvance(QStringLiteral("tokens")));
  unit->setEnabled(false);
  row->addSpacing(2);
  row->addWidget(unit);
  column->addLayout(row);
  column->addWidget(slider_);
  slider_->setVisible(text_.has_slider);

  const QString name = text_.unit.isEmpty() ? text_.label : text_.label + ", " + text_.unit;
  slider_->setAccessibleName(name);
  slider_->setAccessibleDescription(text_.help);
  slider_->setPageStep(4);
  guard_wheel(*slider_);
  box_->setAccessibleName(name);
  box_->setAlignment(Qt::AlignRight);
  box_->setFixedWidth(QFontMetrics(font()).averageCharWidth() * kBoxCharacters + 24);
  label_->setBuddy(box_);
  setToolTip(text_.help);
  box_->installEventFilter(this);

  connect(slider_, &QSlider::valueChanged, this, &SliderBox::slid);
  connect(slider_, &QSlider::sliderPressed, this, &SliderBox::drag_began);
  connect(slider_, &QSlider::sliderReleased, this, &SliderBox::drag_ended);
  connect(box_, &QLineEdit::editingFinished, this, &SliderBox::typed);
}

void SliderBox::set_stops(const std::vector<double>& stops) {
  if (stops == stops_ || slider_->isSliderDown()) return;
  stops_ = stops;
  const QSignalBlocker quiet(slider_);
  slider_->setRange(0, std::max(0, static_cast<int>(stops_.size()) - 1));
  slider_->setValue(nearest_stop(value_));
}

int SliderBox::nearest_stop(double value) const {
  const auto after = std::lower_bound(stops_.begin(), stops_.end(), value);
  if (after == stops_.begin()) return 0;
  const auto position = static_cast<int>(after - stops_.begin());
  if (after == stops_.end()) return position - 1;
  return *after - value < value - *(after - 1) ? position : position - 1;
}

void SliderBox::set_value(double value) {
  value_ = value;
  const QSignalBlocker quiet(slider_);
  if (!slider_->isSliderDown()) slider_->setValue(nearest_stop(value));
  show_value();
}

void SliderBox::show_value() {
  const bool is_named = value_ == 0 && !text_.zero.isEmpty();
  box_->setText(is_named ? text_.zero : text_.format(value_));
  box_->setCursorPosition(0);
  slider_->setAccessibleDescription(text_.help + ": " + box_->text() + " " + text_.unit);
  show_fault({});
}

void SliderBox::slid(int position) {
  if (stops_.empty()) return;
  value_ = stops_[static_cast<size_t>(position)];
  show_value();
  Q_EMIT value_edited(value_);
}

void SliderBox::typed() {
  const QString text = box_->text().trimmed();
  if (!box_->isModified()) return;
  box_->setModified(false);
  try {
    const double value = text == text_.zero && !text.isEmpty() ? 0 : text_.parse(text);
    if (value == value_) return show_value();
    set_value(value);
    Q_EMIT value_edited(value);
  } catch (const Error& error) {
    show_fault(QString::fromStdString(error.what()) +
               (error.hint().empty() ? QString() : "\n" + QString::fromStdString(error.hint())));
  }
}

void SliderBox::show_fault(const QString& fault) {
  box_->setToolTip(fault.isEmpty() ? text_.help : fault);
  const bool is_faulty = !fault.isEmpty();
  if (box_->property("fault").toBool() == is_faulty) return;  // A style sheet costs a millisecond.
  box_->setProperty("fault", is_faulty);
  box_->setStyleSheet(fault.isEmpty() ? QString()
                                      : QStringLiteral("QLineEdit { border: 2px solid #D55E00; }"));
}

bool SliderBox::eventFilter(QObject* watched, QEvent* event) {
  if (watched == box_ && event->type() == QEvent::KeyPress &&
      static_cast<QKeyEvent*>(event)->key() == Qt::Key_Escape && box_->isModified()) {
    box_->setModified(false);
    show_value();
    return true;
  }
  return QWidget::eventFilter(watched, event);
}

}  // namespace ring::gui
