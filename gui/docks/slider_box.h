// SliderBox: a slider, a number box with its unit, and a label, of one number.
#pragma once

#include <QWidget>
#include <functional>
#include <vector>

class QLabel;
class QLineEdit;
class QSlider;

namespace ring::gui {

struct SliderBoxText {
  QString label, unit, help;
  QString zero;  ///< What the value 0 is called; empty: as other numbers.
  /// Throws Error(kUsage) for what is no number.
  std::function<double(const QString&)> parse;
  std::function<QString(double)> format;
  bool has_slider = true;
};

/// While the slider is dragged, `value_edited` comes between `drag_began` and `drag_ended`. Values
/// that are set from outside Q_EMIT nothing.
class SliderBox : public QWidget {
  Q_OBJECT

 public:
  explicit SliderBox(SliderBoxText text, QWidget* parent = nullptr);

  void set_stops(const std::vector<double>& stops);
  /// The slider goes to the nearest stop; the box shows the value itself.
  void set_value(double value);
  double value() const { return value_; }

  QSlider* slider() const { return slider_; }
  QLineEdit* box() const { return box_; }
  QLabel* label() const { return label_; }

 Q_SIGNALS:
  void value_edited(double value);
  void drag_began();
  void drag_ended();

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void slid(int position);
  void typed();
  void show_value();
  void show_fault(const QString& fault);
  int nearest_stop(double value) const;

  SliderBoxText text_;
  std::vector<double> stops_;
  double value_ = 0;
  QLabel* label_;
  QSlider* slider_;
  QLineEdit* box_;
};

}  // namespace ring::gui
