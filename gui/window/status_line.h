// StatusLine: what is shown in one line, what goes on, how far it is, and the button that stops it.
#pragma once

#include <QStatusBar>

class QLabel;

namespace ring::gui {

class Task;

class StatusLine : public QStatusBar {
  Q_OBJECT

 public:
  explicit StatusLine(QWidget* parent = nullptr);

  /// While the task runs, its label, progress and a cancel button are shown.
  void watch(Task& task);
  void set_summary(const QString& summary, bool is_fault);
  void set_busy(bool is_busy);
  /// For some seconds.
  void say(const QString& text);
  /// Until something else is said.
  void warn(const QString& text);
  QString summary() const;
  QString message() const;

 private:
  QLabel* summary_;
  QLabel* message_;
  QLabel* busy_;
};

}  // namespace ring::gui
