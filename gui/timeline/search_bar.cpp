#include "gui/timeline/search_bar.h"

#include <QEvent>
#include <QHBoxLayout>
#include <QKeyEvent>
#include <QLabel>
#include <QLineEdit>
#include <QVBoxLayout>

namespace ring::gui {

SearchBar::SearchBar(QWidget* parent)
    : QFrame(parent),
      line_(new QLineEdit(this)),
      answer_(new QLabel(this)),
      fault_(new QLabel(this)) {
  setObjectName(QStringLiteral("timeline_search"));
  setFrameShape(QFrame::StyledPanel);
  setAutoFillBackground(true);
  auto* const column = new QVBoxLayout(this);
  column->setContentsMargins(6, 4, 6, 4);
  auto* const row = new QHBoxLayout;
  column->addLayout(row);
  row->addWidget(line_, 1);
  row->addWidget(answer_);
  // What is wrong can be a sentence.
  column->addWidget(fault_);
  fault_->setAccessibleName(QStringLiteral("What is wrong with the search"));
  fault_->hide();
  line_->setPlaceholderText(QStringLiteral("attend kv 3 >2ms"));
  line_->setAccessibleName(QStringLiteral("Search the timeline"));
  line_->setToolTip(
      QStringLiteral("Kinds (attend, send, …), wait, rank 3, kv 2, to 1, step 4, "
                     "r3:17, >2ms, <5us; all words must hold"));
  line_->setClearButtonEnabled(true);
  line_->setMinimumWidth(180);
  line_->installEventFilter(this);
  answer_->setAccessibleName(QStringLiteral("What was found"));
  connect(line_, &QLineEdit::textChanged, this, &SearchBar::text_changed);
  hide();
}

void SearchBar::open() {
  show();
  raise();
  line_->setFocus(Qt::ShortcutFocusReason);
  line_->selectAll();
}

void SearchBar::set_text(const QString& text) {
  if (line_->text() != text) line_->setText(text);
}

void SearchBar::set_answer(const QString& answer, bool is_error) {
  answer_->setText(is_error ? QString() : answer);
  const QFontMetrics metrics(fault_->font());
  fault_->setText(metrics.elidedText(answer, Qt::ElideRight, 80 * metrics.averageCharWidth()));
  fault_->setToolTip(answer);
  fault_->setVisible(is_error);
  adjustSize();
}

bool SearchBar::eventFilter(QObject* watched, QEvent* event) {
  if (watched != line_ || event->type() != QEvent::KeyPress) {
    return QFrame::eventFilter(watched, event);
  }
  const auto* const key = static_cast<QKeyEvent*>(event);
  if (key->key() == Qt::Key_Escape) {
    Q_EMIT closed();
    return true;
  }
  if (key->key() == Qt::Key_Return || key->key() == Qt::Key_Enter) {
    Q_EMIT next_wanted((key->modifiers() & Qt::ShiftModifier) != 0 ? -1 : 1);
    return true;
  }
  return QFrame::eventFilter(watched, event);
}

}  // namespace ring::gui
