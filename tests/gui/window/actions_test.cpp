// Every action of the table is there, has its place and its key, and does something.
#include <gmock/gmock.h>

#include <QAction>
#include <QLineEdit>
#include <QListWidget>
#include <QMenu>
#include <QMenuBar>
#include <QTabWidget>
#include <set>

#include "gui/window/command_palette.h"
#include "gui/window/help_sheet.h"
#include "tests/gui/window/window_testing.h"

namespace ring::gui {
namespace {

using testing::HasSubstr;

class Actions : public WindowTest {};

std::set<QAction*> actions_in(const QList<QAction*>& list) {
  std::set<QAction*> found;
  for (QAction* action : list) {
    found.insert(action);
    if (action->menu() != nullptr) found.merge(actions_in(action->menu()->actions()));
  }
  return found;
}

TEST_F(Actions, EveryOneIsBoundAndInAMenu) {
  MainWindow window(small_scenario());
  EXPECT_TRUE(window.actions().unbound().empty());
  const std::set<QAction*> in_menus = actions_in(window.menuBar()->actions());
  for (QAction* action : window.actions().all()) {
    EXPECT_EQ(in_menus.count(action), 1U) << action->text().toStdString();
  }
  EXPECT_GE(window.actions().all().size(), window_actions().size() + timeline_actions().size());
}

TEST_F(Actions, NoKeyMeansTwoThings) {
  std::map<QString, QString> owners;
  MainWindow window(small_scenario());
  for (const QAction* action : window.actions().all()) {
    const QString keys = keys_of(*action).replace(QStringLiteral(", "), QStringLiteral("; "));
    for (const QString& key : keys.split(QStringLiteral("; "), Qt::SkipEmptyParts)) {
      EXPECT_TRUE(owners.emplace(key, action->text()).second)
          << key.toStdString() << ": " << owners[key].toStdString() << " and "
          << action->text().toStdString();
    }
  }
}

TEST_F(Actions, HelpSheetNamesEveryActionAndKey) {
  MainWindow window(small_scenario());
  const QString html = help_html(window.actions().all());
  for (const QAction* action : window.actions().all()) {
    EXPECT_TRUE(html.contains(name_of(*action).toHtmlEscaped())) << action->text().toStdString();
    for (const QString& key : keys_of(*action).split(QStringLiteral("; "))) {
      EXPECT_TRUE(html.contains(key.toHtmlEscaped())) << action->text().toStdString();
    }
  }
}

TEST_F(Actions, PaletteFindsAndDoesEveryAction) {
  MainWindow window(small_scenario());
  window.show();
  wait_until_settled(window);
  window.workspace().edit([](Scenario& s) { s.tuning.pipeline_depth = 3; }, "depth");
  for (QAction* action : window.actions().all()) {
    if (!action->isEnabled()) continue;
    CommandPalette palette({window.actions().all()}, nullptr);
    palette.field()->setText(name_of(*action));
    bool is_listed = false;
    for (int row = 0; row < palette.list()->count(); ++row) {
      is_listed = is_listed || palette.list()->item(row)->text().contains(name_of(*action));
    }
    EXPECT_TRUE(is_listed) << action->text().toStdString();
  }
  CommandPalette palette(window.actions().all(), nullptr);
  QTest::keyClicks(palette.field(), QStringLiteral("undo"));
  QTest::keyClick(palette.field(), Qt::Key_Return);
  ASSERT_NE(palette.chosen(), nullptr);
  EXPECT_EQ(palette.chosen(), window.actions().action("undo"));
}

TEST_F(Actions, PaletteKnowsTheMenus) {
  MainWindow window(small_scenario());
  CommandPalette palette(window.actions().all(), nullptr);
  palette.field()->setText(QStringLiteral("sweep block"));
  ASSERT_GT(palette.list()->count(), 0);
  EXPECT_EQ(palette.list()->item(0)->text(), QStringLiteral("Sweep: Block size and depth"));
}

TEST_F(Actions, MenusShowTheKeysOfTheTimeline) {
  MainWindow window(small_scenario());
  for (const QAction* action : window.actions().all()) {
    if (menu_of(*action) != QStringLiteral("Timeline")) continue;
    EXPECT_EQ(action->text(), name_of(*action) + "\t" + keys_of(*action));
    EXPECT_TRUE(action->shortcuts().isEmpty());  // Outside the timeline they mean nothing.
  }
}

TEST_F(Actions, NarrowWindowsAreAllowed) {
  MainWindow window(small_scenario());
  window.show();
  wait_until_settled(window);
  window.resize(900, 600);
  EXPECT_EQ(window.size(), QSize(900, 600));
  for (int tab = 0; tab < window.tabs().count(); ++tab) {
    window.tabs().setCurrentIndex(tab);
    QTest::qWait(1);
    EXPECT_EQ(window.size(), QSize(900, 600));
    EXPECT_GE(window.tabs().currentWidget()->width(), 280);
  }
}

TEST_F(Actions, WordsMatchInAnyOrder) {
  EXPECT_TRUE(matches(QStringLiteral("Save session as …"), QStringLiteral("session sa")));
  EXPECT_TRUE(matches(QStringLiteral("Save session"), QString()));
  EXPECT_FALSE(matches(QStringLiteral("Save session"), QStringLiteral("run")));
}

// Triggers each one; dialogs are answered with files of the test.
TEST_F(Actions, EveryOneCanBeTriggered) {
  MainWindow window(small_scenario());
  window.show();
  window.runner().set_repeats(1);
  window.runner().set_calibration_budget_s(0.1);
  wait_until_settled(window);
  window.files().ask_open = [](const QString&, const QString&) { return QString(); };
  int saved = 0;
  window.files().ask_save = [&](const QString& title, const QString& filter) {
    ++saved;
    const QString end = filter.contains(QStringLiteral(".toml"))   ? QStringLiteral(".toml")
                        : filter.contains(QStringLiteral(".svg"))  ? QStringLiteral(".svg")
                        : filter.contains(QStringLiteral(".json")) ? QStringLiteral(".json")
                                                                   : QStringLiteral(".ringscope");
    return path(qPrintable(title.section(' ', -1) + QString::number(saved) + end));
  };
  for (QAction* action : window.actions().all()) {
    const QString id = action->objectName();
    if (id == QStringLiteral("quit")) continue;
    action->trigger();
    // Real runs are tested on their own.
    window.runner().cancel();
    QTest::qWait(1);
  }
  EXPECT_GE(saved, 4);
  EXPECT_EQ(window.status().message().contains(QStringLiteral("error")), false);
  for (QWidget* top : QApplication::topLevelWidgets()) {
    if (qobject_cast<QDialog*>(top) != nullptr) top->close();
  }
  window.actions().action("quit")->trigger();
  EXPECT_FALSE(window.isVisible());
}

TEST_F(Actions, KeysOfTheWindowDoWhatTheTableSays) {
  MainWindow window(small_scenario());
  window.show();
  QApplication::setActiveWindow(&window);
  wait_until_settled(window);
  QTest::keyClick(&window, Qt::Key_2, Qt::ControlModifier);
  EXPECT_EQ(window.tabs().currentIndex(), 1);
  QTest::keyClick(&window, Qt::Key_3, Qt::ControlModifier);
  EXPECT_EQ(window.tabs().currentIndex(), 2);
  QTest::keyClick(&window, Qt::Key_1, Qt::ControlModifier);
  EXPECT_EQ(window.tabs().currentIndex(), 0);
  window.workspace().edit([](Scenario& s) { s.tuning.pipeline_depth = 3; }, "depth");
  QTest::keyClick(&window, Qt::Key_Z, Qt::ControlModifier);
  EXPECT_EQ(window.workspace().scenario().tuning.pipeline_depth, 2);
  QTest::keyClick(&window, Qt::Key_Z, Qt::ControlModifier | Qt::ShiftModifier);
  EXPECT_EQ(window.workspace().scenario().tuning.pipeline_depth, 3);
  QTest::keyClick(&window, Qt::Key_T, Qt::ControlModifier);
  EXPECT_EQ(window.theme(), Theme::kDark);
  QTest::keyClick(&window, Qt::Key_F8);
  EXPECT_FALSE(window.parameters().isVisible());
}

}  // namespace
}  // namespace ring::gui
