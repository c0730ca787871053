#include "gui/window/main_window.h"

#include <QAction>
#include <QCloseEvent>
#include <QMenuBar>
#include <QMimeData>
#include <QTabWidget>
#include <QUrl>

#include "core/wording.h"
#include "gui/window/look.h"

namespace ring::gui {

namespace {

constexpr int kPlayFrameMs = 33;
constexpr int kLeastMiddle = 300;

}  // namespace

MainWindow::MainWindow(Scenario first, Theme theme, QWidget* parent)
    : QMainWindow(parent), workspace_(std::move(first)), runner_(workspace_), theme_(theme) {
  setWindowTitle(tr("RingScope"));
  setAcceptDrops(true);
  resize(1600, 980);
  build_middle();
  build_docks();
  status_ = new StatusLine(this);
  setStatusBar(status_);
  files_ = new FileDesk(*this);
  actions_ = new ActionSet(*this, *timeline_);
  actions_->fill(*menuBar());
  bind_actions();
  bind_view_actions();
  RING_ASSERT(actions_->unbound().empty());
  files_->fill_menus();
  connect_parts();
  set_theme(theme);
  update_actions();
  timeline_->setFocus();
}

MainWindow::~MainWindow() {
  // What speaks to the workspace goes before it.
  runner_.cancel();
  delete files_;
  delete tabs_;
  delete parameters_;
  delete answers_;
}

void MainWindow::build_middle() {
  tabs_ = new QTabWidget(this);
  tabs_->setDocumentMode(true);
  timeline_ = new TimelineView;
  sweeps_ = new SweepTab(workspace_);
  ring_ = new RingView;
  tabs_->addTab(timeline_, tr("Timeline"));
  tabs_->addTab(sweeps_, tr("Sweeps"));
  tabs_->addTab(ring_, tr("Ring"));
  tabs_->setAccessibleName(tr("Views"));
  // What does not fit is wrapped or cut; a window for half a screen is worth that.
  tabs_->setMinimumWidth(kLeastMiddle);
  setCentralWidget(tabs_);
}

void MainWindow::build_docks() {
  parameters_ = new ParametersDock(workspace_, this);
  answers_ = new AnswersDock(workspace_, this);
  addDockWidget(Qt::LeftDockWidgetArea, parameters_);
  addDockWidget(Qt::RightDockWidgetArea, answers_);
  resizeDocks({parameters_, answers_}, {320, 360}, Qt::Horizontal);
}

void MainWindow::connect_parts() {
  connect(&workspace_, &Workspace::scenario_changed, this, &MainWindow::update_actions);
  connect(&workspace_, &Workspace::studied, this, &MainWindow::show_study);
  connect(&workspace_, &Workspace::explained, this,
          [this] { ring_->set_reasons(workspace_.reasons()); });
  connect(&workspace_, &Workspace::refused, this, &MainWindow::show_summary);
  connect(&workspace_, &Workspace::busy_changed, status_, &StatusLine::set_busy);
  connect(timeline_, &TimelineView::selection_changed, answers_, &AnswersDock::show_selection);
  connect(timeline_, &TimelineView::slice_selected, answers_,
          [this](std::optional<SliceRef> slice) {
            answers_->show_op(slice ? timeline_->describe(*slice) : QString(), slice);
          });
  connect(timeline_, &TimelineView::activated, answers_, [this](SliceRef) {
    answers_->show();
    answers_->raise();
  });
  connect(timeline_, &TimelineView::cursor_moved, ring_,
          [this](qint64 at_ps) { ring_->set_cursor_ps(at_ps); });
  connect(ring_, &RingView::cursor_wanted, timeline_,
          [this](qint64 at_ps) { timeline_->set_cursor_ps(at_ps); });
  connect(&answers_->questions(), &QuestionList::asked, this, &MainWindow::show_answer);
  connect(parameters_, &ParametersDock::model_file_wanted, files_, &FileDesk::open);
  connect(parameters_, &ParametersDock::machine_file_wanted, files_, &FileDesk::open);
  for (Task* task : {&runner_.task(), &sweeps_->task(), &files_->task()}) {
    status_->watch(*task);
    connect(task, &Task::failed, this, &MainWindow::tell);
    connect(task, &Task::ended, this, &MainWindow::update_actions);
    connect(task, &Task::started, this, &MainWindow::update_actions);
  }
  connect(&runner_, &MachineRunner::measured, this,
          [this](const QString& verification, bool is_right) {
            is_right ? status_->say(verification) : tell(verification, {});
            timeline_->set_layout_mode(LayoutMode::kStacked);
          });
  connect(&runner_, &MachineRunner::calibrated, this,
          [this](const QString& path) { status_->say(tr("Calibrated: %1").arg(path)); });
  connect(&play_, &QTimer::timeout, this, &MainWindow::play_frame);
  play_.setInterval(kPlayFrameMs);
}

void MainWindow::set_theme(Theme theme) {
  theme_ = theme;
  apply_look(theme);
  timeline_->set_theme(theme);
  sweeps_->set_theme(theme);
  ring_->set_theme(theme);
  answers_->set_theme(theme);
}

void MainWindow::show_study() {
  timeline_->set_runs(workspace_.model());
  ring_->set_study(workspace_.study());
  show_summary();
  update_actions();
}

void MainWindow::show_summary() {
  if (!workspace_.refusal().isEmpty()) {
    status_->set_summary(workspace_.refusal(), true);
    timeline_->set_runs(workspace_.model());
    return;
  }
  const Study& study = *workspace_.study();
  const std::string text = describe(study.plan->program.tuning) + ": " +
                           format_time(study.result.makespan_ps) + ", overlap " +
                           format_percent(study.result.metrics.overlap);
  status_->set_summary(QString::fromStdString(text), false);
}

void MainWindow::tell(const QString& message, const QString& hint) {
  status_->warn(hint.isEmpty() ? message : message + " (" + hint + ")");
}

void MainWindow::closeEvent(QCloseEvent* event) {
  runner_.cancel();
  sweeps_->cancel();
  files_->task().cancel();
  QMainWindow::closeEvent(event);
}

void MainWindow::dragEnterEvent(QDragEnterEvent* event) {
  if (event->mimeData()->hasUrls()) event->acceptProposedAction();
}

void MainWindow::dropEvent(QDropEvent* event) {
  for (const QUrl& url : event->mimeData()->urls()) {
    if (url.isLocalFile()) return files_->open_path(url.toLocalFile());
  }
}

void MainWindow::play() {
  const auto model = workspace_.model();
  if (play_.isActive() || !model || model->end_ps <= 0) return play_.stop();
  if (timeline_->cursor_ps() >= model->end_ps) timeline_->set_cursor_ps(0);
  play_.start();
}

void MainWindow::play_frame() {
  constexpr int kPlayFrames = 240;
  const auto model = workspace_.model();
  if (!model) return play_.stop();
  const Picoseconds step_ps = std::max<Picoseconds>(1, model->end_ps / kPlayFrames);
  timeline_->set_cursor_ps(std::min(timeline_->cursor_ps() + step_ps, model->end_ps));
  if (timeline_->cursor_ps() >= model->end_ps) play_.stop();
}

}  // namespace ring::gui
