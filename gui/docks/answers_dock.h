// AnswersDock: what the prediction says, why, and what would help.
#pragma once

#include <QDockWidget>
#include <vector>

#include "gui/docks/answers_text.h"
#include "gui/docks/question_list.h"
#include "gui/docks/rank_bars.h"
#include "gui/timeline/timeline_view.h"

class QGridLayout;
class QGroupBox;
class QLabel;
class QProgressBar;
class QScrollArea;

namespace ring::gui {

class Workspace;

class AnswersDock : public QDockWidget {
  Q_OBJECT

 public:
  explicit AnswersDock(Workspace& workspace, QWidget* parent = nullptr);

  void set_theme(Theme theme);
  void show_selection(const TimelineSelection& selection);
  /// One op in words, with its slack where that is known; nothing shows the selection again.
  void show_op(const QString& words, std::optional<SliceRef> slice);
  /// All that is shown, as text: for the clipboard, and for tests.
  QString text() const;
  QuestionList& questions() { return *questions_; }

 protected:
  void resizeEvent(QResizeEvent* event) override;

 private:
  void show_plan();
  void show_study();
  void show_reasons();
  void show_answers();
  void show_refusal();
  void show_measured();
  QGroupBox* add_section(const QString& title);
  QWidget* build_selection();
  void set_selection(const QString& text);
  void fit_selection();

  Workspace& workspace_;
  QWidget* content_;
  QScrollArea* area_;
  QScrollArea* selection_area_ = nullptr;
  QLabel* time_;
  QLabel* interval_;
  QLabel* measured_;
  QLabel* bottleneck_;
  QLabel* machine_;
  QLabel* warnings_;
  QLabel* refusal_;
  QProgressBar* memory_;
  QLabel* memory_text_;
  QuestionList* questions_;
  QLabel* metrics_;
  QLabel* bounds_;
  QLabel* effects_;
  QLabel* reasons_;
  QLabel* selection_;
  RankBars* balance_;
  QLabel* balance_text_;
};

}  // namespace ring::gui
