#include <fmt/format.h>

#include <filesystem>

#include "core/error.h"
#include "core/paths.h"
#include "core/strategy.h"
#include "experiments/calibration_run.h"
#include "experiments/demo_report.h"
#include "experiments/measurement_rounds.h"
#include "experiments/outputs.h"
#include "experiments/progress.h"
#include "experiments/report.h"
#include "experiments/report_json.h"
#include "kernels/host_facts.h"
#include "kernels/machine_choice.h"

namespace ring {

namespace {

constexpr const char* kPictured = "llama8b-4-512";

class DemoVerb final : public Verb {
 public:
  std::string_view name() const override { return "demo"; }
  std::string_view summary() const override {
    return "Calibrate, predict and run rings on this machine, and show both";
  }

  void declare(VerbOptions& options) override {
    options.heading("Demo");
    options.text("--machine", machine_, "FILE", "Machine profile to use instead of calibrating");
    options.time("--budget", budget_ps_, "Time that calibration may take [45s]");
    options.count("--repeat", repeat_, "Measured runs of a configuration [6]", {1, 1000});
    options.flag("--backward", is_backward_, "Rings with a backward pass instead of forward ones");
    options.flag("--small", is_small_, "Sequences a quarter as long: seconds instead of a minute");
    options.heading("Files");
    options.text("-o,--output", folder_, "FOLDER",
                 "Where run files, trace and picture go [ringscope-demo]");
  }

  int run(VerbContext& context) override {
    Console& console = context.console;
    if (machine_ && budget_ps_) {
      throw_usage("--budget is for the calibration, which --machine leaves out");
    }
    if (budget_ps_ && *budget_ps_ <= 0) throw_usage("--budget must be more than 0");
    require_place_for(path_of("trace.json.gz"));
    if (!console.is_json()) console.print(host_line() + "\n");
    const MachineChoice choice = machine(context);
    const std::vector<DemoConfiguration> configurations =
        is_backward_ ? backward_demo_configurations(is_small_) : demo_configurations(is_small_);
    std::vector<RingProgram> programs;
    for (const DemoConfiguration& each : configurations) {
      programs.push_back(plan(each.problem, each.tuning));
    }
    std::vector<Prediction> predictions;
    for (const RingProgram& program : programs) {
      predictions.push_back(predict(program, choice.machine));
    }
    const SeededData data(1);
    Progress progress(console, "demo");
    MeasurementRounds rounds(rounds_options(choice), context.is_interrupted);
    measure_all(programs, configurations, data, rounds, progress);
    std::vector<DemoRow> rows;
    for (size_t i = 0; i < programs.size(); ++i) {
      if (!rounds.measurement(i).is_complete || context.is_interrupted) continue;
      progress.update(1, "checking " + configurations[i].name);
      DemoRow& row = rows.emplace_back(
          DemoRow{configurations[i], std::move(predictions[i]), rounds.measurement(i), {}, {}});
      row.measured = ring::measure(row.measurement.timeline);
      row.verification = verify_rows(programs[i], data, rounds.executor(i), 16);
    }
    progress.clear();
    const bool is_partial = rows.size() < programs.size();
    std::vector<std::string> files;
    try {
      files = write_files(rows, choice);
    } catch (const Error&) {
      show(console, choice, rows, rounds.steadiness(), {}, is_partial);
      throw;
    }
    show(console, choice, rows, rounds.steadiness(), files, is_partial);
    if (is_partial) {
      throw Error(ErrorKind::kInterrupted,
                  fmt::format("stopped after {} of {} configurations; these are shown", rows.size(),
                              programs.size()));
    }
    return summarize(rows).wrong_results > 0 ? exit_code(ErrorKind::kWrongResult) : 0;
  }

 private:
  static std::string host_line() {
    const HostFacts host = detect_host();
    return fmt::format("{}, {} cores, {}", host.processor, host.cores,
                       format_bytes(host.memory_bytes));
  }

  MachineChoice machine(VerbContext& context) const {
    if (machine_) return choose_machine(*machine_);
    CalibrationOptions options;
    if (budget_ps_) options.budget_s = seconds_from_picoseconds(*budget_ps_);
    CalibrationResult result = run_calibration(context, options);
    const std::string path = write_calibration(result, default_machine_path());
    if (!result.is_complete) {
      throw Error(ErrorKind::kInterrupted,
                  fmt::format("stopped while calibrating; {} holds what was measured", path));
    }
    if (!context.console.is_json()) {
      context.console.print(fmt::format("calibrated in {:.0f} s: {}\n", result.elapsed_s, path));
    }
    return choose_machine(path);
  }

  RoundsOptions rounds_options(const MachineChoice& choice) const {
    RoundsOptions options;
    options.repeats = static_cast<int>(repeat_.value_or(6));
    options.calibrated_check_s = calibrated_speed_check_s(choice.calibration);
    return options;
  }

  static void measure_all(const std::vector<RingProgram>& programs,
                          const std::vector<DemoConfiguration>& configurations,
                          const DataSource& data, MeasurementRounds& rounds, Progress& progress) {
    progress.update(0, "filling Q, K and V");
    for (const RingProgram& program : programs) rounds.add(program, data);
    rounds.run([&](size_t i, double done) { progress.update(done, configurations[i].name); });
  }

  std::string path_of(const std::string& name) const {
    return (std::filesystem::path(folder_.value_or("ringscope-demo")) / name).string();
  }

  /// Run files of all rows, and trace and picture of one; returns what is worth looking at.
  std::vector<std::string> write_files(const std::vector<DemoRow>& rows,
                                       const MachineChoice& choice) const {
    std::vector<std::string> shown;
    if (rows.empty()) return shown;
    for (const DemoRow& row : rows) {
      const RingProgram program = plan(row.configuration.problem, row.configuration.tuning);
      RunFile file = begin_run_file(program, choice.machine.name);
      add_prediction(file, row.prediction);
      file.seed = 1;
      file.measured = row.measurement.timeline;
      file.measured_metrics = row.measured;
      file.measured_steps_ps = row.measurement.steps_ps;
      write_run(path_of(row.configuration.name + ".json"), file);
      const bool is_pictured = row.configuration.name == kPictured || &row == &rows.back();
      if (!is_pictured || !shown.empty()) continue;
      shown.push_back(path_of("trace.json.gz"));
      write_run_trace(shown.back(), file, &program);
      shown.push_back(path_of("timeline.svg"));
      write_run_picture(shown.back(), file);
    }
    return shown;
  }

  void show(Console& console, const MachineChoice& choice, const std::vector<DemoRow>& rows,
            const Steadiness& steadiness, const std::vector<std::string>& files,
            bool is_partial) const {
    if (console.is_json()) {
      Json document = json_document("demo");
      document["partial"] = is_partial;
      document["machine"] = machine_choice_json(choice);
      add_demo_json(document, rows, steadiness);
      document["files"] = files;
      console.print_document(document);
      return;
    }
    if (rows.empty()) return console.print("\nno configuration was measured\n");
    const Style& style = console.style();
    console.print("\n" + demo_table(rows, style) + "\n" +
                  summary_text(summarize(rows), steadiness, style));
    if (files.empty()) return;
    console.print(
        fmt::format("\nLook at\n"
                    "  {}   measured (solid) and predicted (hatched), one row a lane\n"
                    "  {}  the same at https://ui.perfetto.dev: drag it in, then W and S zoom\n"
                    "  {}   one run file a configuration: ringscope compare FILE\n",
                    files[1], files[0], path_of("*.json")));
  }

  std::optional<std::string> machine_, folder_;
  std::optional<Picoseconds> budget_ps_;
  std::optional<int64_t> repeat_;
  bool is_small_ = false, is_backward_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_demo_verb() { return std::make_unique<DemoVerb>(); }

}  // namespace ring
