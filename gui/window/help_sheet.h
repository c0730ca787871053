// HelpSheet: all actions with their keys and gestures, from the tables.
#pragma once

#include <QDialog>
#include <vector>

class QAction;

namespace ring::gui {

/// The sheet as HTML.
QString help_html(const std::vector<QAction*>& actions);

class HelpSheet : public QDialog {
  Q_OBJECT

 public:
  HelpSheet(const std::vector<QAction*>& actions, QWidget* parent);
};

}  // namespace ring::gui
