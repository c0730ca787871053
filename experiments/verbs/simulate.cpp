#include <fmt/format.h>

#include "core/error.h"
#include "core/formats/program_json.h"
#include "core/formats/timeline_json.h"
#include "core/machine_scaling.h"
#include "core/program_check.h"
#include "core/strategy.h"
#include "experiments/json.h"
#include "experiments/outputs.h"
#include "experiments/program_source.h"
#include "experiments/report.h"
#include "experiments/report_json.h"
#include "experiments/setup.h"
#include "experiments/verb.h"
#include "kernels/machine_choice.h"
#include "sim/prediction.h"
#include "sim/study.h"

namespace ring {

namespace {

class SimulateVerb final : public Verb {
 public:
  std::string_view name() const override { return "simulate"; }
  std::string_view summary() const override {
    return "Predict time, overlap and balance of a ring program";
  }

  bool has_partial_results() const override { return false; }
  void declare(VerbOptions& options) override {
    options.heading("Program");
    options.text("--program", program_, "FILE",
                 "A program instead of a problem and tuning: in text form, or a Chakra trace\n"
                 "PREFIX.0.et of several ranks");
    setup_.declare_problem(options);
    setup_.declare_tuning(options);
    setup_.declare_machine(options);
    options.count("--noise-seed", noise_seed_,
                  "Show one noisy run with this seed [the run without noise]", {0});
    setup_.declare_scenario(options);
    outputs_.declare(options);
  }

  int run(VerbContext& context) override {
    Console& console = context.console;
    Scenario scenario = setup_.resolve();
    if (program_ && setup_.is_config_wanted()) {
      throw_usage("--print-config: a scenario file has no --program",
                  "leave one out; the program file itself is what reproduces it");
    }
    if (!program_) setup_.refuse_unused(scenario.tuning);
    if (noise_seed_) scenario.noise_seed = static_cast<uint64_t>(*noise_seed_);
    if (setup_.print_config(scenario, console)) return 0;
    outputs_.require_places();
    MachineChoice choice = choose_machine(scenario.machine);
    apply(scenario.what_if, choice.machine);
    const Noise& noise = choice.machine.noise;
    if (noise_seed_ && noise.per_op <= 0 && noise.per_run <= 0) {
      throw_usage(fmt::format("--noise-seed: machine '{}' states no noise", choice.machine.name),
                  "a calibrated profile does; so does jitter under [what_if] of a scenario");
    }
    if (!program_) {
      const auto source = plan_source(scenario.problem, scenario.tuning);
      if (estimated_ops(*source, kMostStudyOps) > kMostStudyOps) {
        return run_streamed(console, scenario, choice);
      }
    }
    const RingProgram program =
        program_ ? read_given_program(choice.machine) : plan(scenario.problem, scenario.tuning);
    require_sound(program);
    const Prediction prediction = predict(program, choice.machine, simulation_options(scenario));
    const Blame blame = blame_of(program, prediction.result.timeline, choice.machine);

    if (console.is_json()) {
      print_json(console, program, choice, prediction, &blame);
    } else {
      print_text(console, program, choice, prediction, &blame);
    }
    if (outputs_.is_any_given()) {
      RunFile file = begin_run_file(program, choice.machine.name);
      add_prediction(file, prediction);
      file.seed = scenario.noise_seed.value_or(0);
      outputs_.write(file, program, console);
    }
    return 0;
  }

 private:
  /// A program that is too large to be kept.
  int run_streamed(Console& console, const Scenario& scenario, const MachineChoice& choice) const {
    if (outputs_.is_any_given()) {
      throw_usage(fmt::format("a program of more than {} ops has no timeline to write",
                              format_count(kMostStudyOps)),
                  "larger blocks (--block) or fewer ranks; the figures come without -o too");
    }
    const RingProgram outline = outline_of(scenario.problem, scenario.tuning);
    const Prediction prediction =
        predict_streamed(outline, choice.machine, simulation_options(scenario));
    if (console.is_json()) {
      print_json(console, outline, choice, prediction, nullptr);
    } else {
      print_text(console, outline, choice, prediction, nullptr);
    }
    return 0;
  }

  RingProgram read_given_program(const Machine& machine) const {
    if (setup_.is_program_given()) {
      throw_usage("--program already says everything: leave out the options of problem and tuning");
    }
    RingProgram program = read_any_program(*program_);
    if (machine.transfer == TransferKind::kLinks &&
        program.ranks() > std::ssize(machine.processors)) {
      throw_usage(fmt::format("{} has {} ranks, the machine {} processors", *program_,
                              program.ranks(), machine.processors.size()),
                  "give a --machine with as many, for example cluster:gpus=N");
    }
    return program;
  }

  static void print_text(Console& console, const RingProgram& program, const MachineChoice& choice,
                         const Prediction& prediction, const Blame* blame) {
    const Style& style = console.style();
    const Metrics& metrics = prediction.result.metrics;
    std::vector<ReportLine> lines = setup_lines(program, choice);
    lines.push_back({"time", format_time(prediction.result.makespan_ps), Tone::kStrong});
    if (prediction.interval.coverage > 0) {
      lines.push_back({"interval", describe(prediction.interval)});
    }
    for (const ReportLine& line : metrics_lines(metrics)) lines.push_back(line);
    if (blame != nullptr) lines.push_back({"spent on", bottleneck_sentence(*blame)});
    for (const std::string& quantity : prediction.extrapolated) {
      lines.push_back({"extrapolated", quantity, Tone::kWarn});
    }
    for (const std::string& text : prediction.result.notes) lines.push_back({"note", text});
    console.print(lines_text(lines, style));
    console.print("\n" + rank_table(metrics, style));
  }

  static void print_json(Console& console, const RingProgram& program, const MachineChoice& choice,
                         const Prediction& prediction, const Blame* blame) {
    Json document = json_document("simulate");
    if (program.has_attention) {
      document["problem"] = problem_to_json(program.problem);
      document["tuning"] = tuning_to_json(program.tuning);
    } else {
      document["program"] = {{"ranks", program.ranks()}, {"ops", program.op_count()}};
    }
    document["machine"] = machine_choice_json(choice);
    document["prediction"] = prediction_json(prediction);
    if (blame != nullptr) document["blame"] = blame_json(*blame);
    console.print_document(document);
  }

  SetupOptions setup_;
  OutputOptions outputs_;
  std::optional<std::string> program_;
  std::optional<int64_t> noise_seed_;
};

}  // namespace

std::unique_ptr<Verb> make_simulate_verb() { return std::make_unique<SimulateVerb>(); }

}  // namespace ring
