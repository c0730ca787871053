#include "gui/window/action_set.h"

#include <QAction>
#include <QMenu>
#include <QMenuBar>
#include <QWidget>

#include "core/error.h"
#include "gui/paint/text.h"
#include "gui/timeline/timeline_view.h"

namespace ring::gui {

ActionSet::ActionSet(QWidget& window, TimelineView& timeline) : QObject(&window) {
  for (const ActionInfo& info : window_actions()) {
    auto* action = new QAction(qt(info.text), &window);
    action->setObjectName(qt(info.id));
    action->setToolTip(qt(info.help));
    action->setStatusTip(qt(info.help));
    QList<QKeySequence> keys;
    for (const QString& key : qt(info.keys).split(QStringLiteral("; "), Qt::SkipEmptyParts)) {
      keys.append(QKeySequence(key));
    }
    action->setShortcuts(keys);
    action->setProperty("menu", qt(info.menu));
    window.addAction(action);
    by_id_.emplace(info.id, action);
    is_bound_.emplace(info.id, false);
    all_.push_back(action);
    by_menu_.emplace_back(qt(info.menu), action);
  }
  for (const TimelineActionInfo& info : timeline_actions()) {
    // The keys belong to the timeline, so they are shown but are no shortcuts of the window.
    auto* action = new QAction(
        QStringLiteral("%1\t%2").arg(QString::fromUtf8(info.name), QString::fromUtf8(info.keys)),
        &window);
    action->setObjectName(QStringLiteral("timeline"));
    action->setProperty("menu", QStringLiteral("Timeline"));
    action->setProperty("keys", QString::fromUtf8(info.keys));
    action->setProperty("gesture", QString::fromUtf8(info.gesture));
    action->setToolTip(QString::fromUtf8(info.gesture));
    connect(action, &QAction::triggered, &timeline,
            [&timeline, what = info.action] { timeline.trigger(what); });
    all_.push_back(action);
    by_menu_.emplace_back(QStringLiteral("Timeline"), action);
  }
}

void ActionSet::bind(std::string_view id, std::function<void()> act) {
  QAction* const bound = action(id);
  RING_ASSERT(!is_bound_.find(id)->second);
  is_bound_.find(id)->second = true;
  connect(bound, &QAction::triggered, this, std::move(act));
}

std::vector<std::string> ActionSet::unbound() const {
  std::vector<std::string> ids;
  for (const auto& [id, is_bound] : is_bound_) {
    if (!is_bound) ids.push_back(id);
  }
  return ids;
}

QAction* ActionSet::action(std::string_view id) const {
  const auto at = by_id_.find(id);
  RING_ASSERT(at != by_id_.end());
  return at->second;
}

void ActionSet::fill(QMenuBar& bar) const {
  std::map<QString, QMenu*> menus;
  for (const QString& name :
       {tr("File"), tr("Edit"), tr("View"), tr("Timeline"), tr("Run"), tr("Sweep"), tr("Help")}) {
    menus[name] = bar.addMenu(name);
  }
  for (const auto& [menu, action] : by_menu_) {
    RING_ASSERT(menus.count(menu) == 1);
    menus[menu]->addAction(action);
  }
}

QString name_of(const QAction& action) { return action.text().section('\t', 0, 0); }

QString menu_of(const QAction& action) { return action.property("menu").toString(); }

QString keys_of(const QAction& action) {
  const QVariant own = action.property("keys");
  if (own.isValid()) return own.toString();
  return QKeySequence::listToString(action.shortcuts(), QKeySequence::NativeText)
      .replace(QStringLiteral("; "), QStringLiteral(", "));
}

}  // namespace ring::gui
