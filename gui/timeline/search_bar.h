// SearchBar: the line in which one searches the timeline, with what was found beside it.
#pragma once

#include <QFrame>

class QLabel;
class QLineEdit;

namespace ring::gui {

class SearchBar : public QFrame {
  Q_OBJECT

 public:
  explicit SearchBar(QWidget* parent);
  void open();
  void set_text(const QString& text);
  /// What was found, or why nothing could be searched.
  void set_answer(const QString& answer, bool is_error);

 Q_SIGNALS:
  void text_changed(const QString& text);
  void next_wanted(int by);
  void closed();

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  QLineEdit* line_;
  QLabel* answer_;
  QLabel* fault_;
};

}  // namespace ring::gui
