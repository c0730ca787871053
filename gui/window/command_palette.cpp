#include "gui/window/command_palette.h"

#include <QAction>
#include <QKeyEvent>
#include <QLineEdit>
#include <QListWidget>
#include <QVBoxLayout>

#include "gui/window/action_set.h"

namespace ring::gui {

bool matches(const QString& name, const QString& text) {
  for (const QString& word : text.split(' ', Qt::SkipEmptyParts)) {
    bool is_found = false;
    for (const QString& part : name.split(' ', Qt::SkipEmptyParts)) {
      is_found = is_found || part.startsWith(word, Qt::CaseInsensitive);
    }
    if (!is_found) return false;
  }
  return true;
}

CommandPalette::CommandPalette(const std::vector<QAction*>& actions, QWidget* parent)
    : QDialog(parent),
      actions_(actions),
      field_(new QLineEdit(this)),
      list_(new QListWidget(this)) {
  setWindowTitle(tr("Commands"));
  setModal(true);
  resize(520, 420);
  auto* column = new QVBoxLayout(this);
  column->addWidget(field_);
  column->addWidget(list_);
  field_->setPlaceholderText(tr("Type what you want to do"));
  field_->setAccessibleName(tr("Command"));
  list_->setAccessibleName(tr("Commands"));
  field_->installEventFilter(this);
  connect(field_, &QLineEdit::textChanged, this, &CommandPalette::filter);
  connect(field_, &QLineEdit::returnPressed, this, &CommandPalette::choose);
  connect(list_, &QListWidget::itemActivated, this, &CommandPalette::choose);
  filter({});
}

void CommandPalette::filter(const QString& text) {
  list_->clear();
  listed_.clear();
  for (QAction* action : actions_) {
    const QString name = name_of(*action), menu = menu_of(*action);
    if (!action->isEnabled() || !matches(menu + " " + name + " " + action->toolTip(), text)) {
      continue;
    }
    const QString keys = keys_of(*action);
    list_->addItem(tr("%1: %2").arg(menu, keys.isEmpty() ? name : name + "    " + keys));
    listed_.push_back(action);
  }
  list_->setCurrentRow(0);
}

void CommandPalette::choose() {
  const int row = list_->currentRow();
  if (row < 0 || row >= static_cast<int>(listed_.size())) return;
  chosen_ = listed_[static_cast<size_t>(row)];
  accept();
}

bool CommandPalette::eventFilter(QObject* watched, QEvent* event) {
  if (watched == field_ && event->type() == QEvent::KeyPress) {
    const int key = static_cast<QKeyEvent*>(event)->key();
    const bool is_move = key == Qt::Key_Up || key == Qt::Key_Down;
    if (is_move && list_->count() > 0) {
      const int step = key == Qt::Key_Up ? -1 : 1;
      list_->setCurrentRow((list_->currentRow() + step + list_->count()) % list_->count());
      return true;
    }
  }
  return QDialog::eventFilter(watched, event);
}

}  // namespace ring::gui
