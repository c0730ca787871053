// ChoiceBox: a list of forms such as "window", and a field for what stands behind the colon.
#pragma once

#include <QWidget>
#include <vector>

#include "core/choices.h"

class QComboBox;
class QLabel;
class QLineEdit;

namespace ring::gui {

/// The text is KIND or KIND:PARAMETER. A text set from outside emits nothing, and one that is not
/// among the forms is listed as it is.
class ChoiceBox : public QWidget {
  Q_OBJECT

 public:
  /// With `is_tall` the field has a line of its own, for long parameters.
  ChoiceBox(const QString& label, const QString& help, bool is_tall, QWidget* parent = nullptr);

  void set_forms(const std::vector<ChoiceForm>& forms);
  void set_text(const QString& text);
  const QString& text() const { return text_; }

  QComboBox* kinds() const { return kinds_; }
  QLineEdit* parameter() const { return parameter_; }

 Q_SIGNALS:
  void text_chosen(const QString& text);

 private:
  void kind_chosen(int index);
  void parameter_typed();
  void show_text();

  std::vector<ChoiceForm> forms_;
  QString text_;
  QComboBox* kinds_;
  QLineEdit* parameter_;
};

}  // namespace ring::gui
