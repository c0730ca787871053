#include "gui/docks/choice_box.h"

#include <QComboBox>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QSignalBlocker>
#include <QVBoxLayout>

#include "gui/docks/wheel_guard.h"

namespace ring::gui {

ChoiceBox::ChoiceBox(const QString& label, const QString& help, bool is_tall, QWidget* parent)
    : QWidget(parent), kinds_(new QComboBox(this)), parameter_(new QLineEdit(this)) {
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  auto* row = new QHBoxLayout;
  column->addLayout(row);
  auto* name = new QLabel(label, this);
  name->setBuddy(kinds_);
  row->addWidget(name);
  row->addStretch(1);
  row->addWidget(kinds_);
  if (is_tall) {
    column->addWidget(parameter_);
  } else {
    row->addWidget(parameter_);
    parameter_->setFixedWidth(fontMetrics().averageCharWidth() * 12 + 16);
  }
  kinds_->setAccessibleName(label);
  kinds_->setSizeAdjustPolicy(QComboBox::AdjustToContents);
  kinds_->setMaximumWidth(190);
  guard_wheel(*kinds_);
  parameter_->setAccessibleName(tr("Parameter of %1").arg(label));
  setToolTip(help);
  connect(kinds_, &QComboBox::activated, this, &ChoiceBox::kind_chosen);
  connect(parameter_, &QLineEdit::editingFinished, this, &ChoiceBox::parameter_typed);
}

void ChoiceBox::set_forms(const std::vector<ChoiceForm>& forms) {
  const bool is_same =
      std::equal(forms.begin(), forms.end(), forms_.begin(), forms_.end(),
                 [](const ChoiceForm& a, const ChoiceForm& b) { return a.kind == b.kind; });
  forms_ = forms;  // The examples may differ even so.
  if (is_same) return;
  const QSignalBlocker quiet(kinds_);
  kinds_->clear();
  for (const ChoiceForm& form : forms_) {
    kinds_->addItem(QString::fromStdString(form.kind));
    kinds_->setItemData(kinds_->count() - 1, QString::fromStdString(form.summary), Qt::ToolTipRole);
  }
  show_text();
}

void ChoiceBox::set_text(const QString& text) {
  text_ = text;
  show_text();
}

void ChoiceBox::show_text() {
  const std::string text = text_.toStdString();
  const QString kind = QString::fromStdString(std::string(kind_of(text)));
  const QSignalBlocker quiet(kinds_);
  int index = kinds_->findText(kind);
  while (kinds_->count() > static_cast<int>(forms_.size())) kinds_->removeItem(kinds_->count() - 1);
  const bool is_known = index >= 0 && index < static_cast<int>(forms_.size());
  if (!is_known) {
    kinds_->addItem(text_);
    index = kinds_->count() - 1;
  }
  kinds_->setCurrentIndex(index);
  const ChoiceForm* form = is_known ? &forms_[static_cast<size_t>(index)] : nullptr;
  const QString parameter = QString::fromStdString(std::string(parameter_of(text)));
  parameter_->setVisible(is_known && (!form->parameter.empty() || !parameter.isEmpty()));
  if (!parameter_->hasFocus() || parameter_->text() != parameter) parameter_->setText(parameter);
  parameter_->setCursorPosition(0);
  if (form != nullptr) {
    parameter_->setPlaceholderText(QString::fromStdString(form->parameter));
    parameter_->setToolTip(QString::fromStdString(form->parameter));
    kinds_->setToolTip(QString::fromStdString(form->summary));
  }
}

void ChoiceBox::kind_chosen(int index) {
  if (index < 0 || index >= static_cast<int>(forms_.size())) return;
  const ChoiceForm& form = forms_[static_cast<size_t>(index)];
  if (form.kind == kind_of(text_.toStdString())) return;
  text_ = QString::fromStdString(form.example);
  show_text();
  Q_EMIT text_chosen(text_);
}

void ChoiceBox::parameter_typed() {
  const int index = kinds_->currentIndex();
  if (index < 0 || index >= static_cast<int>(forms_.size())) return;
  QString text = QString::fromStdString(forms_[static_cast<size_t>(index)].kind);
  const QString parameter = parameter_->text().trimmed();
  if (!parameter.isEmpty()) text += ":" + parameter;
  if (text == text_) return;
  text_ = text;
  show_text();
  Q_EMIT text_chosen(text_);
}

}  // namespace ring::gui
