// Workspace: what the window is about: the scenario, its prediction and reasons, and a real run.
#pragma once

#include <QObject>
#include <QString>
#include <QTimer>
#include <functional>
#include <memory>
#include <optional>

#include "core/formats/run_json.h"
#include "gui/session/latest_job.h"
#include "gui/session/machine_cache.h"
#include "gui/session/scenario_history.h"
#include "gui/timeline/timeline_model.h"
#include "sim/questions.h"
#include "sim/study.h"

namespace ring::gui {

/// A run that was measured, here or elsewhere.
struct MeasuredFile {
  std::shared_ptr<const RunFile> run;
  std::shared_ptr<const RingProgram> program;  ///< Null when the file does not say.
  std::shared_ptr<const RunData> data;         ///< What is drawn; null without measured times.
  QString path;                                ///< Empty while it is in no file.
};

/// Plans the program of the run. Throws Error(kUsage) for a run without any timeline. Off the GUI
/// thread.
MeasuredFile measured_of(RunFile run);
/// The same from a run file.
MeasuredFile read_measured(const std::string& path);

/// Every change of the scenario is simulated at once, off the GUI thread, at most once per frame;
/// of several changes the newest wins. All on the GUI thread.
class Workspace : public QObject {
  Q_OBJECT

 public:
  explicit Workspace(Scenario first, QObject* parent = nullptr);
  ~Workspace() override;

  const Scenario& scenario() const { return history_.current(); }
  /// One step of undo, or part of the drag under way. `what`: "block size".
  void edit(const std::function<void(Scenario&)>& change, const QString& what);
  void begin_drag() { history_.begin_drag(); }
  void end_drag();
  void undo();
  void redo();
  const ScenarioHistory& history() const { return history_; }
  /// Starts anew: no steps to undo. With `is_recorded` the run's own prediction is shown.
  void open(Scenario scenario, std::optional<MeasuredFile> measured = std::nullopt,
            bool is_recorded = false);

  /// Shows a measured run over the prediction. With `adopt` the scenario becomes that of the run,
  /// and its own prediction is shown for as long as the scenario stays as it is.
  void set_measured(MeasuredFile measured, bool adopt);
  void clear_measured();
  /// Whether the prediction shown is the one that the run holds.
  bool is_recorded() const { return pinned_ && is_same(pinned_->scenario, scenario()); }
  const std::optional<MeasuredFile>& measured() const { return measured_; }
  /// The run was saved there.
  void set_measured_path(const QString& path);

  /// Simulates again although nothing changed, for example after a calibration.
  void refresh();

  /// The newest of each that was worked out; null before the first. They may be of an older
  /// scenario while `is_busy`.
  std::shared_ptr<const StudyPlan> plan() const { return plan_; }
  std::shared_ptr<const Study> study() const { return study_; }
  std::shared_ptr<const StudyReasons> reasons() const { return reasons_; }
  /// In the order of kQuestions.
  std::shared_ptr<const std::vector<Answer>> answers() const { return answers_; }
  std::shared_ptr<const TimelineModel> model() const { return model_; }
  const QString& machine_note() const { return machine_note_; }
  /// Why the current scenario cannot be simulated; empty when it can.
  const QString& refusal() const { return refusal_; }
  const QString& refusal_hint() const { return refusal_hint_; }
  /// Whether what is shown is not yet that of the scenario.
  bool is_busy() const { return quick_.is_busy() || frame_.isActive(); }
  MachineCache& machines() { return *machines_; }

  /// Holds back what could disturb a measurement of time: explaining goes on later.
  void set_quiet(bool is_quiet);

 Q_SIGNALS:
  void scenario_changed();
  void planned();    ///< Bounds are known.
  void studied();    ///< Prediction and picture are known.
  void explained();  ///< Interval and reasons are known, or more of them.
  void answered();   ///< The questions are.
  void refused();    ///< The scenario cannot be simulated.
  void busy_changed(bool is_busy);

 private:
  /// A prediction that was made before, and the scenario that it is of.
  struct Pinned {
    Scenario scenario;
    std::shared_ptr<const RunFile> run;
  };

  void changed();
  void simulate_now();
  void explain_later();
  void explain_now();
  void explain(const std::shared_ptr<const Study>& study, const JobContext& job);
  /// Unless another study is shown by then. Off the GUI thread.
  void publish_reasons(const std::shared_ptr<const Study>& study, StudyReasons reasons,
                       const JobContext& job);
  void show_plan(std::shared_ptr<const StudyPlan> plan, const QString& note);
  void show_study(std::shared_ptr<const Study> study, std::shared_ptr<const TimelineModel> model);
  void show_refusal(const QString& message, const QString& hint,
                    std::shared_ptr<const TimelineModel> model);

  ScenarioHistory history_;
  std::optional<MeasuredFile> measured_;
  std::optional<Pinned> pinned_;
  std::shared_ptr<MachineCache> machines_;
  std::shared_ptr<const StudyPlan> plan_;
  std::shared_ptr<const Study> study_;
  std::shared_ptr<const StudyReasons> reasons_;
  std::shared_ptr<const std::vector<Answer>> answers_;
  std::shared_ptr<const TimelineModel> model_;
  QString machine_note_, refusal_, refusal_hint_;
  bool is_quiet_ = false;
  QTimer frame_, rest_;
  bool is_due_ = false;  ///< Changed since the last simulation began.
  LatestJob quick_, slow_;
};

}  // namespace ring::gui
