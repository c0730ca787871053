// ActionSet: the actions of the table as Qt actions, each with what it does.
#pragma once

#include <QObject>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "gui/window/action_table.h"

class QAction;
class QMenuBar;
class QWidget;

namespace ring::gui {

class TimelineView;

class ActionSet : public QObject {
  Q_OBJECT

 public:
  /// The actions of the table belong to `window`, which hears their keys; those of the timeline are
  /// heard by `timeline` itself.
  ActionSet(QWidget& window, TimelineView& timeline);

  /// What the action of the table does; every one must be bound once.
  void bind(std::string_view id, std::function<void()> act);
  /// Ids without a binding; empty when the window is whole.
  std::vector<std::string> unbound() const;

  QAction* action(std::string_view id) const;
  /// All actions, those of the timeline last, in the order of the tables.
  const std::vector<QAction*>& all() const { return all_; }
  void fill(QMenuBar& bar) const;

 private:
  std::map<std::string, QAction*, std::less<>> by_id_;
  std::map<std::string, bool, std::less<>> is_bound_;
  std::vector<QAction*> all_;
  std::vector<std::pair<QString, QAction*>> by_menu_;
};

/// Its name, without the keys that a menu shows beside it.
QString name_of(const QAction& action);
/// Where it stands in the menus: "Sweep".
QString menu_of(const QAction& action);
/// Keys of an action as people read them: "Ctrl+Z", or what the table says for gestures.
QString keys_of(const QAction& action);

}  // namespace ring::gui
