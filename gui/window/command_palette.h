// CommandPalette: every action by its name, found by typing.
#pragma once

#include <QDialog>
#include <vector>

class QAction;
class QLineEdit;
class QListWidget;

namespace ring::gui {

class CommandPalette : public QDialog {
  Q_OBJECT

 public:
  CommandPalette(const std::vector<QAction*>& actions, QWidget* parent);

  QLineEdit* field() const { return field_; }
  QListWidget* list() const { return list_; }
  /// The action to be done; null when the dialog was left without one.
  QAction* chosen() const { return chosen_; }

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void filter(const QString& text);
  void choose();

  std::vector<QAction*> actions_;
  std::vector<QAction*> listed_;
  QLineEdit* field_;
  QListWidget* list_;
  QAction* chosen_ = nullptr;
};

/// Whether all words of `text` begin somewhere in `name`, in any order and case.
bool matches(const QString& name, const QString& text);

}  // namespace ring::gui
