#include "gui/session/machine_runner.h"

#include "core/error.h"
#include "core/formats/run_files.h"
#include "core/paths.h"
#include "core/strategy.h"
#include "gui/session/workspace.h"
#include "kernels/calibration_file.h"
#include "kernels/host_facts.h"
#include "kernels/measured_run.h"

namespace ring::gui {

namespace {

Scenario on_this_machine(Scenario scenario) {
  scenario.machine.clear();
  clear_what_ifs(scenario);
  return scenario;
}

RunFile run_file(const RingProgram& program, const MeasureOptions& options,
                 const MachineChoice& machine, const MeasuredRun& run) {
  RunFile file = begin_run_file(program, machine.machine.name);
  file.seed = options.seed;
  file.context["processor"] = detect_host().processor;
  file.measured = run.measurement.timeline;
  file.measured_metrics = run.metrics;
  file.measured_steps_ps = run.measurement.steps_ps;
  return file;
}

}  // namespace

MachineRunner::MachineRunner(Workspace& workspace, QObject* parent)
    : QObject(parent), workspace_(workspace) {
  connect(&task_, &Task::started, this, [this] { workspace_.set_quiet(true); });
  connect(&task_, &Task::ended, this, [this] { workspace_.set_quiet(false); });
}

void MachineRunner::measure() {
  const Scenario scenario = on_this_machine(workspace_.scenario());
  workspace_.edit([&](Scenario& edited) { edited = scenario; }, tr("machine"));
  task_.start(tr("Measuring"), [this, scenario, repeats = repeats_](const TaskContext& context) {
    const RingProgram program = plan(scenario.problem, scenario.tuning);
    require_runnable(program, detect_host().available_bytes);
    const MachineChoice machine = workspace_.machines().get(scenario.machine);
    // Predicted first, as always.
    const Prediction prediction = predict(program, machine.machine);
    MeasureOptions options;
    options.repeats = repeats;
    options.on_progress = [&context](double done, std::string_view what) {
      context.progress(done, std::string(what));
    };
    const MeasuredRun run = measure_program(program, options, context.is_cancelled);
    if (!run.measurement.is_complete) return;
    RunFile file = run_file(program, options, machine, run);
    add_prediction(file, prediction);
    context.publish(
        [this, verification = *run.verification, measured_file = measured_of(std::move(file))] {
          workspace_.set_measured(measured_file, false);
          Q_EMIT measured(QString::fromStdString(verification.text()), verification.is_right());
        });
  });
}

void MachineRunner::calibrate() {
  task_.start(tr("Calibrating"),
              [this, budget_s = calibration_budget_s_](const TaskContext& context) {
                CalibrationOptions options;
                options.budget_s = budget_s;
                options.interrupt = &context.is_cancelled;
                options.on_progress = [&context](const CalibrationProgress& now) {
                  context.progress(now.done, now.probe);
                };
                const CalibrationResult result = ring::calibrate(options);
                // A part of a calibration is of no use in the window, and must not replace a whole
                // one.
                if (!result.is_complete) return;
                const std::string path = write_calibration(result, default_machine_path());
                context.publish([this, path] {
                  workspace_.refresh();
                  Q_EMIT calibrated(QString::fromStdString(path));
                });
              });
}

}  // namespace ring::gui
