// QuestionList: the questions that people ask first, their answers, and a way to where they show.
#pragma once

#include <QWidget>
#include <map>
#include <vector>

#include "sim/questions.h"

class QLabel;

namespace ring::gui {

class QuestionList : public QWidget {
  Q_OBJECT

 public:
  explicit QuestionList(QWidget* parent = nullptr);

  /// No answers: they are being worked out.
  void set_answers(const std::vector<Answer>& answers);
  /// There are none, and why.
  void set_missing(const QString& why);
  /// All that is shown, as rich text.
  QString text() const;
  QLabel& label(Question question) { return *labels_.at(question); }

 Q_SIGNALS:
  /// Somebody wants to see it; `rank` as in Answer.
  void asked(ring::Question question, int rank);

 private:
  void show_answer(Question question, const QString& answer, const QString& link);
  void changeEvent(QEvent* event) override;

  std::map<Question, QLabel*> labels_;
  std::map<Question, int> ranks_;
};

}  // namespace ring::gui

Q_DECLARE_METATYPE(ring::Question)
