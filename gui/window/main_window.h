// MainWindow: timeline, sweeps and ring in the middle, parameters left, answers right.
#pragma once

#include <QMainWindow>
#include <QTimer>

#include "gui/docks/answers_dock.h"
#include "gui/docks/parameters_dock.h"
#include "gui/ring_view/ring_view.h"
#include "gui/session/machine_runner.h"
#include "gui/session/workspace.h"
#include "gui/sweep/sweep_tab.h"
#include "gui/timeline/timeline_view.h"
#include "gui/window/action_set.h"
#include "gui/window/file_desk.h"
#include "gui/window/status_line.h"

class QTabWidget;

namespace ring::gui {

class MainWindow : public QMainWindow {
  Q_OBJECT

 public:
  /// `first` is what is shown to begin with.
  explicit MainWindow(Scenario first, Theme theme = Theme::kLight, QWidget* parent = nullptr);
  ~MainWindow() override;

  Workspace& workspace() { return workspace_; }
  TimelineView& timeline() { return *timeline_; }
  SweepTab& sweeps() { return *sweeps_; }
  RingView& ring() { return *ring_; }
  ParametersDock& parameters() { return *parameters_; }
  AnswersDock& answers() { return *answers_; }
  MachineRunner& runner() { return runner_; }
  ActionSet& actions() { return *actions_; }
  FileDesk& files() { return *files_; }
  StatusLine& status() { return *status_; }
  QTabWidget& tabs() { return *tabs_; }

  Theme theme() const { return theme_; }
  void set_theme(Theme theme);
  /// An error that the user should know of, without standing in the way.
  void tell(const QString& message, const QString& hint);
  bool is_playing() const { return play_.isActive(); }

 protected:
  void closeEvent(QCloseEvent* event) override;
  void dragEnterEvent(QDragEnterEvent* event) override;
  void dropEvent(QDropEvent* event) override;

 private:
  void build_middle();
  void build_docks();
  void connect_parts();
  void bind_actions();
  void bind_view_actions();
  void show_study();
  void show_summary();
  void update_actions();
  void start_sweep(SweepKind kind);
  void play();
  void play_frame();
  void show_palette();
  void show_answer(Question question, int rank);
  void show_rank(int rank);
  void show_about();

  Workspace workspace_;
  MachineRunner runner_;
  Theme theme_;
  QTabWidget* tabs_ = nullptr;
  TimelineView* timeline_ = nullptr;
  SweepTab* sweeps_ = nullptr;
  RingView* ring_ = nullptr;
  ParametersDock* parameters_ = nullptr;
  AnswersDock* answers_ = nullptr;
  StatusLine* status_ = nullptr;
  FileDesk* files_ = nullptr;
  ActionSet* actions_ = nullptr;
  QTimer play_;
};

}  // namespace ring::gui
