// FileDesk: opening, saving, exporting, recent files and shipped examples.
#pragma once

#include <QObject>
#include <QStringList>
#include <functional>

#include "gui/session/open_file.h"
#include "gui/session/task.h"

class QMenu;

namespace ring::gui {

/// A file name to begin with, for a scenario of that name: the first ending that the filter names.
QString suggested_file(const std::string& name, const QString& filter);

class MainWindow;

class FileDesk : public QObject {
  Q_OBJECT

 public:
  explicit FileDesk(MainWindow& window);

  /// Asks for a file, then opens it.
  void open();
  /// Opens any file that the window knows, in the background.
  void open_path(const QString& path);
  void open_example(size_t number);

  void save_session();
  void save_session_as();
  void save_scenario();
  void save_run();
  void export_scene_shown();

  /// Without asking. Throw Error(kRunFailed), and Error(kUsage) for names that say no known kind.
  void save_session_to(const QString& path);
  void export_to(const QString& path);

  QStringList recent() const;
  /// Examples and recent files, in the File menu.
  void fill_menus();
  Task& task() { return task_; }
  const QString& session_path() const { return session_path_; }

  /// How names are asked for; empty: not wanted. Tests answer instead of a dialog.
  std::function<QString(const QString&title, const QString&filter)> ask_open, ask_save;

 Q_SIGNALS:
  void opened(const QString& path);

 private:
  void show_opened(const QString& path, const OpenedFile& file);
  void show_session(const OpenedSession& opened);
  void remember(const QString& path);
  void fill_recent();
  void guarded(const std::function<void()>& act);

  MainWindow& window_;
  QString session_path_;
  QMenu* recent_menu_ = nullptr;
  Task task_;
};

}  // namespace ring::gui
