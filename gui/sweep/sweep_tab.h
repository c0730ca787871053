// SweepTab: what to sweep and by which value, run in the background, with the picture of it.
#pragma once

#include <QWidget>
#include <memory>

#include "core/scenario.h"
#include "gui/session/task.h"
#include "gui/sweep/sweep_plot.h"

class QComboBox;
class QLabel;
class QProgressBar;
class QPushButton;

namespace ring::gui {

class Workspace;

/// The candidates of a sweep of the scenario, on a machine of so many processors.
std::vector<Candidate> sweep_candidates(SweepKind kind, const Scenario& scenario, int processors);

class SweepTab : public QWidget {
  Q_OBJECT

 public:
  explicit SweepTab(Workspace& workspace, QWidget* parent = nullptr);

  SweepPlot& plot() { return *plot_; }
  Task& task() { return task_; }
  void set_kind(SweepKind kind);
  SweepKind kind() const;
  void set_value(CandidateValue value);
  void set_theme(Theme theme) { plot_->set_theme(theme); }
  /// Sweeps the scenario as it is now.
  void run();
  void cancel() { task_.cancel(); }
  /// The results as CSV.
  std::string csv() const { return candidates_csv(plot_->results().points); }

 protected:
  void showEvent(QShowEvent* event) override;

 private:
  void show_point(size_t index, const CandidateResult& result);
  void show_staleness();
  /// The point of the sweep that the scenario is at; none when it is another scenario.
  std::optional<size_t> point_now() const;
  bool is_stale() const;
  void load(size_t point);

  Workspace& workspace_;
  QComboBox* kinds_;
  QComboBox* values_;
  QPushButton* run_;
  QPushButton* cancel_;
  QProgressBar* progress_;
  QLabel* note_;
  SweepPlot* plot_;
  SweepResults results_;
  Scenario swept_;  ///< What `results_` is a sweep of.
  size_t arrived_ = 0;
  bool is_shown_once_ = false;
  Task task_;
};

}  // namespace ring::gui
