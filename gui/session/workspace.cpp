#include "gui/session/workspace.h"

#include "core/error.h"
#include "core/formats/run_files.h"
#include "core/machine_presets.h"

namespace ring::gui {

namespace {

constexpr int kFrameMs = 16;
constexpr int kRestMs = 120;  ///< Reasons are worked out once the scenario rests this long.

std::shared_ptr<const RunData> predicted_data(const std::shared_ptr<const Study>& study) {
  auto data = std::make_shared<RunData>();
  data->name = study->plan->scenario.name;
  data->timeline = study->result.timeline;
  data->program = {study->plan, &study->plan->program};
  return data;
}

/// The prediction that the run file holds, as if it had been simulated now.
Study recorded_study(std::shared_ptr<const StudyPlan> plan, const RunFile& run) {
  Study study;
  study.plan = std::move(plan);
  study.result.timeline = *run.predicted;
  study.result.metrics = run.predicted_metrics ? *run.predicted_metrics : measure(*run.predicted);
  study.result.makespan_ps = run.predicted->makespan_ps();
  return study;
}

}  // namespace

MeasuredFile measured_of(RunFile run) {
  if (!run.measured && !run.predicted) throw_usage("the run has no timeline");
  MeasuredFile measured;
  measured.program = std::make_shared<const RingProgram>(program_of(run));
  measured.data = run_data(run, TimelineOrigin::kMeasured, measured.program);
  measured.run = std::make_shared<const RunFile>(std::move(run));
  return measured;
}

MeasuredFile read_measured(const std::string& path) {
  MeasuredFile measured = measured_of(read_run(path));
  measured.path = QString::fromStdString(path);
  return measured;
}

Workspace::Workspace(Scenario first, QObject* parent)
    : QObject(parent), history_(std::move(first)), machines_(std::make_shared<MachineCache>()) {
  frame_.setSingleShot(true);
  frame_.setInterval(kFrameMs);
  rest_.setSingleShot(true);
  rest_.setInterval(kRestMs);
  connect(&frame_, &QTimer::timeout, this, [this] {
    if (is_due_) simulate_now();
  });
  connect(&rest_, &QTimer::timeout, this, &Workspace::explain_now);
  connect(&quick_, &LatestJob::busy_changed, this, &Workspace::busy_changed);
  simulate_now();
}

Workspace::~Workspace() = default;

void Workspace::edit(const std::function<void(Scenario&)>& change, const QString& what) {
  Scenario scenario = history_.current();
  change(scenario);
  if (history_.set(std::move(scenario), what.toStdString())) changed();
}

void Workspace::end_drag() {
  history_.end_drag();
  Q_EMIT scenario_changed();
}

void Workspace::undo() {
  if (!history_.can_undo()) return;
  history_.undo();
  changed();
}

void Workspace::redo() {
  if (!history_.can_redo()) return;
  history_.redo();
  changed();
}

void Workspace::open(Scenario scenario, std::optional<MeasuredFile> measured, bool is_recorded) {
  history_ = ScenarioHistory(std::move(scenario));
  measured_ = std::move(measured);
  pinned_.reset();
  if (is_recorded && measured_ && measured_->run->predicted) {
    pinned_ = Pinned{history_.current(), measured_->run};
  }
  changed();
}

void Workspace::set_measured(MeasuredFile measured, bool adopt) {
  measured_ = std::move(measured);
  pinned_.reset();
  if (adopt && measured_->run->identity) {
    Scenario scenario = history_.current();
    scenario.problem = measured_->run->identity->problem;
    scenario.tuning = measured_->run->identity->tuning;
    scenario.name = measured_->run->name;
    // A run is of a machine as it is, and of no other.
    const std::string& machine = measured_->run->machine;
    scenario.machine = is_machine_preset(machine) ? machine : std::string();
    clear_what_ifs(scenario);
    history_.set(scenario, "open run");
    if (measured_->run->predicted) pinned_ = Pinned{history_.current(), measured_->run};
  }
  changed();
}

void Workspace::clear_measured() {
  measured_.reset();
  changed();
}

void Workspace::set_measured_path(const QString& path) {
  if (measured_) measured_->path = path;
}

void Workspace::refresh() {
  machines_->forget();
  changed();
}

void Workspace::set_quiet(bool is_quiet) {
  is_quiet_ = is_quiet;
  if (is_quiet) {
    slow_.cancel();
  } else {
    explain_later();
  }
}

void Workspace::changed() {
  is_due_ = true;
  rest_.stop();
  slow_.cancel();
  Q_EMIT scenario_changed();
  if (!frame_.isActive()) simulate_now();
}

void Workspace::simulate_now() {
  is_due_ = false;
  frame_.start();
  quick_.start([this, scenario = scenario(), machines = machines_, measured = measured_,
                recorded = is_recorded() ? pinned_->run : nullptr](const JobContext& job) {
    try {
      MachineChoice choice = machines->get(scenario.machine);
      const QString note = QString::fromStdString(choice.note);
      auto plan = plan_study(scenario, std::move(choice.machine));
      job.publish([this, plan, note] { show_plan(plan, note); });
      auto study = std::make_shared<const Study>(recorded ? recorded_study(plan, *recorded)
                                                          : run_study(plan, job.stop));
      auto model = build_timeline_model(measured ? measured->data : nullptr, predicted_data(study));
      job.publish([this, study, model] { show_study(study, model); });
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::kInterrupted) throw;
      const QString message = QString::fromStdString(error.what());
      const QString hint = QString::fromStdString(error.hint());
      // What was measured can be seen even so.
      auto model =
          measured && measured->data ? build_timeline_model(measured->data, nullptr) : nullptr;
      job.publish([this, message, hint, model] { show_refusal(message, hint, model); });
    }
  });
}

void Workspace::show_plan(std::shared_ptr<const StudyPlan> plan, const QString& note) {
  plan_ = std::move(plan);
  machine_note_ = note;
  Q_EMIT planned();
}

void Workspace::show_study(std::shared_ptr<const Study> study,
                           std::shared_ptr<const TimelineModel> model) {
  study_ = std::move(study);
  model_ = std::move(model);
  reasons_.reset();
  answers_.reset();
  refusal_.clear();
  refusal_hint_.clear();
  Q_EMIT studied();
  explain_later();
}

void Workspace::show_refusal(const QString& message, const QString& hint,
                             std::shared_ptr<const TimelineModel> model) {
  if (model) model_ = std::move(model);
  refusal_ = message;
  refusal_hint_ = hint;
  Q_EMIT refused();
}

void Workspace::explain_later() {
  if (!is_quiet_) rest_.start();
}

void Workspace::explain_now() {
  if (!study_ || is_quiet_) return;
  // What is shown may be told before the work on it is said to be over.
  if (is_busy()) return explain_later();
  slow_.start([this, study = study_](const JobContext& job) {
    try {
      explain(study, job);
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::kInterrupted) throw;
      // Nothing to explain, for example a run of no time: the prediction stands without reasons.
      StudyReasons none;
      none.why.what_if_missing = error.what();
      publish_reasons(study, std::move(none), job);
    }
  });
}

void Workspace::explain(const std::shared_ptr<const Study>& study, const JobContext& job) {
  StudyReasons reasons = explain_study(*study, job.stop);
  publish_reasons(study, reasons, job);
  auto answers = std::make_shared<const std::vector<Answer>>(answer_questions(*study, job.stop));
  job.publish([this, study, answers] {
    if (study != study_) return;
    answers_ = answers;
    Q_EMIT answered();
  });
  add_what_ifs(*study, reasons, job.stop);
  publish_reasons(study, std::move(reasons), job);
}

void Workspace::publish_reasons(const std::shared_ptr<const Study>& study, StudyReasons reasons,
                                const JobContext& job) {
  job.publish([this, study, shared = std::make_shared<const StudyReasons>(std::move(reasons))] {
    if (study != study_) return;
    reasons_ = shared;
    Q_EMIT explained();
  });
}

}  // namespace ring::gui
