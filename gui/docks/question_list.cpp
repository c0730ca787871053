#include "gui/docks/question_list.h"

#include <QEvent>
#include <QLabel>
#include <QVBoxLayout>

#include "gui/paint/text.h"

namespace ring::gui {

namespace {

QString link_text(const Answer& answer) {
  switch (answer.question) {
    case Question::kHiding:
      return QuestionList::tr("show all blocks");
    case Question::kLateRank:
      return answer.rank < 0 ? QString() : QuestionList::tr("show rank %1").arg(answer.rank);
    case Question::kDepth:
      return QuestionList::tr("show all depths");
    case Question::kLink:
      return QuestionList::tr("try it");
  }
  return {};
}

}  // namespace

QuestionList::QuestionList(QWidget* parent) : QWidget(parent) {
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(7);
  for (const Question question : kQuestions) {
    auto* label = new QLabel(this);
    label->setWordWrap(true);
    label->setTextFormat(Qt::RichText);
    label->setTextInteractionFlags(Qt::TextBrowserInteraction);
    label->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
    label->setAccessibleName(qt(text_of(question)));
    column->addWidget(label);
    labels_[question] = label;
    connect(label, &QLabel::linkActivated, this,
            [this, question] { Q_EMIT asked(question, ranks_[question]); });
  }
  set_answers({});
}

void QuestionList::show_answer(Question question, const QString& answer, const QString& link) {
  QString text =
      QStringLiteral("<b>%1</b><br>%2").arg(qt(text_of(question)).toHtmlEscaped(), answer);
  if (!link.isEmpty()) {
    text += QStringLiteral(" <a href='show'>%1</a>").arg(QString(link).replace(' ', QChar::Nbsp));
  }
  labels_.at(question)->setText(text);
}

/// Links take their colour from the palette when their text is set.
void QuestionList::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() != QEvent::PaletteChange) return;
  for (const auto& [question, label] : labels_) {
    const QString text = label->text();
    label->clear();
    label->setText(text);
  }
}

void QuestionList::set_answers(const std::vector<Answer>& answers) {
  if (answers.empty()) return set_missing(tr("working it out …"));
  for (const Answer& answer : answers) {
    ranks_[answer.question] = answer.rank;
    show_answer(answer.question, qt(answer.text).toHtmlEscaped(), link_text(answer));
  }
}

void QuestionList::set_missing(const QString& why) {
  for (const Question question : kQuestions) show_answer(question, why, {});
}

QString QuestionList::text() const {
  QString text;
  for (const auto& [question, label] : labels_) text += label->text() + "\n";
  return text;
}

}  // namespace ring::gui
