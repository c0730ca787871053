#include "gui/window/file_desk.h"

#include <QAction>
#include <QFileDialog>
#include <QFileInfo>
#include <QMenu>
#include <QRegularExpression>
#include <QSettings>

#include "core/error.h"
#include "core/formats/example_scenarios.h"
#include "core/formats/file_io.h"
#include "core/formats/run_files.h"
#include "core/formats/scenario_toml.h"
#include "gui/window/export.h"
#include "gui/window/main_window.h"
#include "gui/window/scenes.h"
#include "gui/window/session_view.h"

namespace ring::gui {

namespace {

constexpr int kMostRecent = 10;
const QString kRecentKey = QStringLiteral("recent");

QSettings settings() {
  return QSettings(QSettings::IniFormat, QSettings::UserScope, QStringLiteral("RingScope"),
                   QStringLiteral("ringscope-gui"));
}

}  // namespace

QString suggested_file(const std::string& name, const QString& filter) {
  static const QRegularExpression kEnding(QStringLiteral("\\*(\\.[a-z]+)"));
  static const QRegularExpression kUnsafe(QStringLiteral("[^A-Za-z0-9._]+"));
  QString stem = QString::fromStdString(name).replace(kUnsafe, QStringLiteral("-"));
  while (stem.endsWith('-')) stem.chop(1);
  return (stem.isEmpty() ? QStringLiteral("ring") : stem) + kEnding.match(filter).captured(1);
}

FileDesk::FileDesk(MainWindow& window) : QObject(&window), window_(window) {
  ask_open = [this](const QString& title, const QString& filter) {
    return QFileDialog::getOpenFileName(&window_, title, {}, filter);
  };
  ask_save = [this](const QString& title, const QString& filter) {
    QFileDialog dialog(&window_, title, {}, filter);
    dialog.setAcceptMode(QFileDialog::AcceptSave);
    const QString file = suggested_file(window_.workspace().scenario().name, filter);
    dialog.setDefaultSuffix(QFileInfo(file).suffix());
    dialog.selectFile(file);
    return dialog.exec() == QDialog::Accepted ? dialog.selectedFiles().value(0) : QString();
  };
}

void FileDesk::guarded(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& error) {
    window_.tell(QString::fromStdString(error.what()), QString::fromStdString(error.hint()));
  }
}

void FileDesk::open() {
  const QString path =
      ask_open(tr("Open"),
               tr("All that can be opened (*.toml *.json *.json.gz *.ringscope);;All files (*)"));
  if (!path.isEmpty()) open_path(path);
}

void FileDesk::open_path(const QString& path) {
  task_.start(tr("Opening"), [this, path](const TaskContext& context) {
    auto file = std::make_shared<const OpenedFile>(open_file(path.toStdString()));
    context.publish([this, path, file] {
      show_opened(path, *file);
      remember(path);
      Q_EMIT opened(path);
    });
  });
}

void FileDesk::open_example(size_t number) {
  session_path_.clear();
  window_.timeline().start_over();
  window_.workspace().open(scenario_of(example_scenarios()[number]));
}

void FileDesk::show_opened(const QString& path, const OpenedFile& file) {
  Workspace& workspace = window_.workspace();
  if (const auto* read = std::get_if<OpenedScenario>(&file)) {
    session_path_.clear();
    Scenario named = read->scenario;
    if (named.name.empty()) named.name = QFileInfo(path).fileName().toStdString();
    window_.timeline().start_over();
    workspace.open(named);
  } else if (const auto* run = std::get_if<OpenedRun>(&file)) {
    workspace.set_measured(run->measured, true);
  } else if (const auto* session = std::get_if<OpenedSession>(&file)) {
    session_path_ = path;
    show_session(*session);
  } else if (const auto* machine = std::get_if<OpenedMachine>(&file)) {
    workspace.machines().forget();
    workspace.edit([&](Scenario& scenario) { scenario.machine = machine->path; }, tr("machine"));
  } else if (const auto* opened = std::get_if<OpenedModel>(&file)) {
    workspace.edit(
        [&](Scenario& scenario) {
          scenario.problem = problem_of(dominant_group(opened->model).shape, opened->model.dtype,
                                        scenario.problem.seq_len());
          scenario.model = opened->path;
        },
        tr("model"));
  }
}

void FileDesk::show_session(const OpenedSession& opened) {
  Workspace& workspace = window_.workspace();
  workspace.open(opened.session.scenario, opened.measured, opened.session.is_recorded);
  restore_view(opened.session.view, window_);
  if (!opened.warning.empty()) {
    window_.tell(tr("The measured run of the session is missing: %1")
                     .arg(QString::fromStdString(opened.warning)),
                 {});
  }
}

void FileDesk::save_session() {
  if (session_path_.isEmpty()) return save_session_as();
  guarded([this] { save_session_to(session_path_); });
}

void FileDesk::save_session_as() {
  const QString path = ask_save(tr("Save session"), tr("Sessions (*.ringscope)"));
  if (!path.isEmpty()) guarded([&] { save_session_to(path); });
}

void FileDesk::save_session_to(const QString& path) {
  const Workspace& workspace = window_.workspace();
  Session session;
  session.scenario = workspace.scenario();
  session.view = view_of(window_);
  session.is_recorded = workspace.is_recorded();
  if (const auto& measured = workspace.measured()) {
    session.run_path = measured->path.toStdString();
    if (session.run_path.empty()) session.run = *measured->run;
  }
  write_file(path.toStdString(), session_json(session));
  session_path_ = path;
  remember(path);
  window_.status().say(tr("Saved %1").arg(path));
}

void FileDesk::save_scenario() {
  const QString path = ask_save(tr("Save scenario"), tr("Scenarios (*.toml)"));
  if (path.isEmpty()) return;
  guarded([&] {
    write_file(path.toStdString(), scenario_toml(window_.workspace().scenario()));
    remember(path);
    window_.status().say(tr("Saved %1").arg(path));
  });
}

void FileDesk::save_run() {
  const QString path = ask_save(tr("Save run"), tr("Runs (*.json *.json.gz)"));
  if (path.isEmpty()) return;
  guarded([&] {
    Workspace& workspace = window_.workspace();
    const auto study = workspace.study();
    RunFile run = begin_run_file(study->plan->program, study->plan->machine.name);
    const auto& measured = workspace.measured();
    // A measured run of another program stays in its own file.
    const bool is_alike = measured && measured->program && measured->run->measured &&
                          measured->program->name == study->plan->program.name &&
                          measured->program->op_count() == study->plan->program.op_count();
    if (is_alike) run = *measured->run;
    run.predicted = study->result.timeline;
    run.predicted_metrics = study->result.metrics;
    if (workspace.reasons() && workspace.reasons()->interval.coverage > 0) {
      run.predicted_interval = workspace.reasons()->interval;
    }
    write_run(path.toStdString(), run);
    if (is_alike) workspace.set_measured_path(path);
    remember(path);
    window_.status().say(tr("Saved %1").arg(path));
  });
}

void FileDesk::export_scene_shown() {
  const QString path =
      ask_save(tr("Export"), tr("Pictures and data (*.svg *.pdf *.png *.csv *.json *.json.gz)"));
  if (!path.isEmpty()) guarded([&] { export_to(path); });
}

void FileDesk::export_to(const QString& path) {
  const SceneSource scene = shown_scene(window_);
  ExportOptions options;
  options.size = shown_size(window_);
  options.pixel_ratio = window_.devicePixelRatioF();
  export_scene(scene, path.toStdString(), options);
  window_.status().say(tr("Exported %1").arg(path));
}

QStringList FileDesk::recent() const { return settings().value(kRecentKey).toStringList(); }

void FileDesk::remember(const QString& path) {
  const QString absolute = QFileInfo(path).absoluteFilePath();
  QStringList paths = recent();
  paths.removeAll(absolute);
  paths.prepend(absolute);
  while (paths.size() > kMostRecent) paths.removeLast();
  settings().setValue(kRecentKey, paths);
  fill_recent();
}

void FileDesk::fill_menus() {
  QAction* before = window_.actions().action("save_session");
  auto* menu = qobject_cast<QMenu*>(before->associatedObjects().last());
  RING_ASSERT(menu != nullptr);
  recent_menu_ = new QMenu(tr("Open recent"), menu);
  auto* examples = new QMenu(tr("Examples"), menu);
  menu->insertMenu(before, recent_menu_);
  menu->insertMenu(before, examples);
  const auto all = example_scenarios();
  for (size_t i = 0; i < all.size(); ++i) {
    QAction* action =
        examples->addAction(QString::fromUtf8(all[i].name.data(), std::ssize(all[i].name)));
    action->setToolTip(QString::fromUtf8(all[i].summary.data(), std::ssize(all[i].summary)));
    connect(action, &QAction::triggered, this, [this, i] { open_example(i); });
  }
  examples->setToolTipsVisible(true);
  fill_recent();
}

void FileDesk::fill_recent() {
  if (recent_menu_ == nullptr) return;
  recent_menu_->clear();
  for (const QString& path : recent()) {
    QAction* action = recent_menu_->addAction(QFileInfo(path).fileName());
    action->setToolTip(path);
    connect(action, &QAction::triggered, this, [this, path] { open_path(path); });
  }
  recent_menu_->setToolTipsVisible(true);
  recent_menu_->setEnabled(!recent_menu_->isEmpty());
}

}  // namespace ring::gui
