#include <fmt/format.h>

#include "core/error.h"
#include "core/formats/program_json.h"
#include "core/formats/timeline_json.h"
#include "core/paths.h"
#include "core/program_check.h"
#include "core/strategy.h"
#include "experiments/device_choice.h"
#include "experiments/json.h"
#include "experiments/outputs.h"
#include "experiments/progress.h"
#include "experiments/report.h"
#include "experiments/report_json.h"
#include "experiments/setup.h"
#include "experiments/verb.h"
#include "kernels/cores.h"
#include "kernels/cuda/gpu_session.h"
#include "kernels/host_facts.h"
#include "kernels/launcher.h"
#include "kernels/machine_choice.h"
#include "kernels/measured_run.h"
#include "sim/prediction.h"

namespace ring {

namespace {

/// Everything that one `run` found out.
struct RunOutcome {
  RingProgram program;
  std::optional<MachineChoice> machine;  ///< None when only the stand-in was there.
  std::optional<Prediction> prediction;
  Measurement measurement;
  Metrics metrics;
  std::optional<Verification> verification;
  Picoseconds clock_uncertainty_ps = 0;
  std::vector<Counter> counters;               ///< Beside the timeline.
  std::map<std::string, std::string> context;  ///< Of the devices that were run on.

  std::optional<Comparison> comparison() const {
    if (!prediction || !measurement.is_complete) return std::nullopt;
    return compare(measurement.timeline, prediction->result.timeline);
  }
  /// Of the predicted time against the median.
  double error() const {
    return static_cast<double>(prediction->result.makespan_ps) /
               static_cast<double>(measurement.median_ps()) -
           1;
  }
};

class RunVerb final : public Verb {
 public:
  std::string_view name() const override { return "run"; }
  std::string_view summary() const override {
    return "Run a ring program for real, check its result, compare with the prediction";
  }

  void declare(VerbOptions& options) override {
    setup_.declare_problem(options);
    setup_.declare_tuning(options);
    setup_.declare_machine(options);
    options.heading("Run");
    options.text("--device", device_, "NAME", "cpu or cuda [cpu]");
    options.count("--cores", cores_, "Cores to use, ranks in turn [all]", {1, 1 << 16});
    options.text("--carrier", carrier_, "NAME",
                 "How GPUs pass messages: copies, or exchanges over NCCL [copies]");
    options.text("--kernels", kernels_, "NAME",
                 "Attention kernels of GPUs: best, mma, wgmma or cudnn [best]");
    options.count("--repeat", repeat_, "Measured runs [5]", {1, 1000});
    options.count("--warmup", warmup_, "Runs before those [1]", {0, 1000});
    options.count("--seed", seed_, "Seed of the values of Q, K and V [1]", {0});
    options.count("--check-rows", check_rows_, "Rows checked against the oracle, 0 for none [16]",
                  {0, 1 << 20});
    setup_.declare_scenario(options);
    outputs_.declare(options);
  }

  int run(VerbContext& context) override {
    const bool is_gpu = device_.value_or("cpu") == "cuda";
    if (carrier_ && !is_gpu) throw_usage("--carrier is for --device cuda");
    if (cores_ && is_gpu) throw_usage("--cores is for --device cpu");
    if (cores_) require_cores(*cores_);
    if (kernels_ && !is_gpu) throw_usage("--kernels is for --device cuda");
    if (carrier_) cuda::parse_carrier(*carrier_);
    if (kernels_) cuda::parse_attend_kernels(*kernels_);
    const Scenario scenario = setup_.resolve();
    setup_.refuse_unused(scenario.tuning);
    if (setup_.print_config(scenario, context.console)) return 0;
    require_device(device_.value_or("cpu"));
    outputs_.require_places();
    const std::unique_ptr<Job> job = join_job(is_gpu);
    if (scenario.what_if != ScenarioWhatIf()) {
      throw_usage("the scenario asks what if, but a run is of this machine as it is",
                  "leave out [what_if], or use ringscope simulate");
    }
    RunOutcome outcome;
    outcome.program = plan(scenario.problem, scenario.tuning);
    require_sound(outcome.program);  // Refused before it is predicted or run.
    predict_first(context.console, scenario, is_gpu, outcome);
    measure(context, outcome, job.get());
    if (job && job->rank() != 0) return 0;  // Process 0 speaks for all.
    report(context.console, outcome);
    outputs_.write(run_file(outcome), outcome.program, context.console);
    if (!outcome.measurement.is_complete) {
      throw Error(ErrorKind::kInterrupted,
                  fmt::format("stopped after {} of {} runs; what was measured is marked partial",
                              outcome.measurement.steps_ps.size(), repeat_.value_or(5)));
    }
    const bool is_wrong =
        outcome.verification && !outcome.verification->is_right() && !outcome.program.skips_pairs;
    return is_wrong ? exit_code(ErrorKind::kWrongResult) : 0;
  }

 private:
  /// The job that this process was launched in, or null.
  std::unique_ptr<Job> join_job(bool is_gpu) const {
    if (launched_processes() == 1) return nullptr;
    if (!is_gpu)
      throw_usage("several processes were launched, and --device cpu runs all ranks in one");
    if (carrier_.value_or("exchanges") != "exchanges")
      throw_usage("processes pass messages by --carrier exchanges only");
    return join_launched_job();
  }

  void predict_first(Console& console, const Scenario& scenario, bool is_gpu,
                     RunOutcome& outcome) const {
    std::string machine = scenario.machine;
    if (is_gpu && machine.empty()) {
      machine = default_gpu_machine_path();
      if (!file_exists(machine)) return;  // That of the cores says nothing about GPUs.
    }
    MachineChoice choice = choose_machine(machine);
    if (is_gpu) warn_of_other_carrier(console, choice.machine);
    if (choice.is_stand_in) return;
    if (!is_gpu) {
      const int cores = static_cast<int>(cores_.value_or(Cores().count()));
      choice.machine = with_cores(std::move(choice.machine), cores);
    }
    try {
      outcome.prediction = predict(outcome.program, choice.machine);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kUsage) throw;
      // A profile that knows nothing of this kind of op is no reason not to run.
      console.note(fmt::format("not predicted: {}\n hint: {}", error.what(), error.hint()));
      return;
    }
    outcome.machine = std::move(choice);
  }

  void warn_of_other_carrier(Console& console, const Machine& machine) const {
    const auto calibrated = machine.context.find("carrier");
    const std::string own = carrier_.value_or(launched_processes() > 1 ? "exchanges" : "copies");
    if (calibrated == machine.context.end() || calibrated->second == own) return;
    console.note(fmt::format("the profile was calibrated with --carrier {}, and this runs with {}",
                             calibrated->second, own));
  }

  void measure(VerbContext& context, RunOutcome& outcome, Job* job) const {
    Progress progress(context.console, "run");
    MeasureOptions options;
    options.cores = static_cast<int>(cores_.value_or(0));
    options.job = job;
    if (device_.value_or("cpu") == "cuda")
      options.gpu = cuda::parse_carrier(carrier_.value_or("copies"));
    options.gpu_kernels = cuda::parse_attend_kernels(kernels_.value_or("best"));
    options.warmups = static_cast<int>(warmup_.value_or(1));
    options.repeats = static_cast<int>(repeat_.value_or(5));
    options.seed = static_cast<uint64_t>(seed_.value_or(1));
    options.check_rows = check_rows_.value_or(16);
    options.on_progress = [&progress](double done, std::string_view what) {
      progress.update(done, what);
    };
    MeasuredRun run = measure_program(outcome.program, options, context.is_interrupted);
    outcome.measurement = std::move(run.measurement);
    outcome.metrics = std::move(run.metrics);
    outcome.verification = std::move(run.verification);
    outcome.clock_uncertainty_ps = run.clock_uncertainty_ps;
    outcome.counters = std::move(run.counters);
    outcome.context = std::move(run.context);
  }

  RunFile run_file(const RunOutcome& outcome) const {
    RunFile file =
        begin_run_file(outcome.program, outcome.machine ? outcome.machine->machine.name : "");
    file.seed = static_cast<uint64_t>(seed_.value_or(1));
    file.context["processor"] = detect_host().processor;
    file.context.insert(outcome.context.begin(), outcome.context.end());
    if (outcome.prediction) add_prediction(file, *outcome.prediction);
    file.measured = outcome.measurement.timeline;
    file.measured_clock_uncertainty_ps = outcome.clock_uncertainty_ps;
    file.measured_counters = outcome.counters;
    file.measured_metrics = outcome.metrics;
    file.measured_steps_ps = outcome.measurement.steps_ps;
    return file;
  }

  static void report(Console& console, const RunOutcome& outcome) {
    if (console.is_json()) {
      print_json(console, outcome);
    } else {
      print_text(console, outcome);
    }
  }

  /// One run says nothing of the spread.
  static std::string measured_text(const Measurement& measured) {
    const std::string time = format_time(measured.median_ps());
    if (measured.steps_ps.size() == 1) return time + ", one run";
    return fmt::format("{} ± {}, median of {} runs", time, format_percent(measured.spread()),
                       measured.steps_ps.size());
  }

  static void print_text(Console& console, const RunOutcome& outcome) {
    const Measurement& measured = outcome.measurement;
    std::vector<ReportLine> lines = setup_lines(outcome.program, outcome.machine);
    if (outcome.prediction) {
      const Prediction& prediction = *outcome.prediction;
      std::string text = format_time(prediction.result.makespan_ps);
      if (prediction.interval.coverage > 0) text += ", " + describe(prediction.interval);
      lines.push_back({"predicted", text});
    }
    if (!measured.is_complete) lines.push_back({"partial", "stopped before the end", Tone::kWarn});
    if (!measured.steps_ps.empty()) {
      lines.push_back({"measured", measured_text(measured), Tone::kStrong});
      if (outcome.prediction) lines.push_back({"error", signed_percent(outcome.error())});
    }
    for (const ReportLine& line : metrics_lines(outcome.metrics)) lines.push_back(line);
    for (const auto& [name, text] : outcome.context) {
      const bool is_held_down = name == cuda::kHeldDownFact && text != cuda::kHeldDownByNothing;
      lines.push_back({name, text, is_held_down ? Tone::kWarn : Tone::kPlain});
    }
    if (outcome.verification && outcome.program.skips_pairs) {
      lines.push_back({"result",
                       fmt::format("not exact by design: error {:.1e} against the oracle",
                                   outcome.verification->error),
                       Tone::kWarn});
    } else if (outcome.verification) {
      lines.push_back({"result", outcome.verification->text(),
                       outcome.verification->is_right() ? Tone::kGood : Tone::kBad});
    }
    console.print(lines_text(lines, console.style()));
    console.print("\n" + rank_table(outcome.metrics, console.style()));
    if (const auto comparison = outcome.comparison()) {
      console.print("\n" + comparison_table(*comparison, "measured", "predicted", console.style()));
    }
  }

  static void print_json(Console& console, const RunOutcome& outcome) {
    const Measurement& measured = outcome.measurement;
    Json document = json_document("run-report");
    document["problem"] = problem_to_json(outcome.program.problem);
    document["tuning"] = tuning_to_json(outcome.program.tuning);
    document["partial"] = !measured.is_complete;
    document["steps_ps"] = measured.steps_ps;
    document["median_ps"] = measured.median_ps();
    document["spread"] = measured.spread();
    document["metrics"] = metrics_to_json(outcome.metrics);
    if (outcome.machine) document["machine"] = machine_choice_json(*outcome.machine);
    if (outcome.prediction) document["prediction"] = prediction_json(*outcome.prediction);
    if (const auto comparison = outcome.comparison()) {
      document["error"] = outcome.error();
      document["comparison"] = comparison_json(*comparison);
    }
    if (!outcome.context.empty()) document["context"] = outcome.context;
    if (outcome.program.skips_pairs) document["is_exact"] = false;
    if (outcome.verification) document["verification"] = verification_json(*outcome.verification);
    console.print_document(document);
  }

  SetupOptions setup_;
  OutputOptions outputs_;
  std::optional<std::string> device_, carrier_, kernels_;
  std::optional<int64_t> cores_, repeat_, warmup_, seed_, check_rows_;
};

}  // namespace

std::unique_ptr<Verb> make_run_verb() { return std::make_unique<RunVerb>(); }

}  // namespace ring
