#include <fmt/format.h>

#include "core/counted.h"
#include "core/error.h"
#include "core/formats/scenario_toml.h"
#include "core/program_check.h"
#include "core/strategy.h"
#include "experiments/json.h"
#include "experiments/program_source.h"
#include "experiments/setup.h"
#include "experiments/verb.h"

namespace ring {

namespace {

Json fault_json(const RingProgram& program, const Fault& fault) {
  Json ops = Json::array();
  for (const OpId id : fault.ops) {
    ops.push_back({{"rank", id.rank}, {"index", id.index}, {"text", describe(program, id)}});
  }
  return {{"kind", std::string(ring::name(fault.kind))}, {"message", fault.message}, {"ops", ops}};
}

class CheckVerb final : public Verb {
 public:
  std::string_view name() const override { return "check"; }
  std::string_view summary() const override {
    return "Find deadlocks and other faults of a program without running it";
  }

  bool has_partial_results() const override { return false; }
  void declare(VerbOptions& options) override {
    options.heading("Program");
    options.optional_argument(
        "FILE", file_,
        "Program in text form, a Chakra trace PREFIX.0.et, or a scenario file\n"
        "that ends in .toml");
    setup_.declare_problem(options);
    setup_.declare_tuning(options);
    setup_.declare_scenario(options);
  }

  int run(VerbContext& context) override {
    const bool is_program = file_ && !file_->ends_with(".toml");
    if (file_ && setup_.is_any_given()) {
      throw_usage("a file already says everything: leave out the other options",
                  "give either FILE or the options of a problem and tuning");
    }
    RingProgram program;
    if (is_program) {
      program = read_any_program(*file_);
    } else {
      const Scenario scenario = file_ ? read_scenario(*file_) : setup_.resolve();
      setup_.refuse_unused(scenario.tuning);
      if (setup_.print_config(scenario, context.console)) return 0;
      program = plan(scenario.problem, scenario.tuning);
    }
    const std::vector<Fault> faults = check_program(program);
    if (context.console.is_json()) {
      print_json(context.console, program, faults);
    } else {
      print_text(context.console, program, faults);
    }
    return faults.empty() ? 0 : exit_code(ErrorKind::kUsage);
  }

 private:
  static void print_json(Console& console, const RingProgram& program,
                         const std::vector<Fault>& faults) {
    Json list = Json::array();
    for (const Fault& fault : faults) list.push_back(fault_json(program, fault));
    Json document = json_document("check");
    document["is_sound"] = faults.empty();
    document["ranks"] = program.ranks();
    document["ops"] = program.op_count();
    document["faults"] = list;
    console.print_document(document);
  }

  static void print_text(Console& console, const RingProgram& program,
                         const std::vector<Fault>& faults) {
    const Style& style = console.style();
    const std::string size =
        fmt::format("{}, {}", counted(program.ranks(), "rank"), counted(program.op_count(), "op"));
    if (faults.empty()) {
      console.print(fmt::format("{}: {}\n", style.paint(Tone::kGood, "sound"), size));
      return;
    }
    console.print(
        fmt::format("{}: {}, {} found\n", style.paint(Tone::kBad, "faulty"), size,
                    faults.size() == 1 ? "one fault" : fmt::format("{} faults", faults.size())));
    for (const Fault& fault : faults) console.print("\n" + fault_text(program, fault, style));
  }

  /// The message of a deadlock holds the whole cycle; as lines it is easier to follow.
  static std::string fault_text(const RingProgram& program, const Fault& fault,
                                const Style& style) {
    const bool is_cycle = fault.kind == FaultKind::kDeadlock && !fault.ops.empty();
    const std::string kind = style.paint(Tone::kStrong, ring::name(fault.kind));
    if (!is_cycle) return fmt::format("{}: {}\n", kind, fault.message);
    std::string text = fmt::format("{}: {} ops wait for each other\n", kind, fault.ops.size());
    for (size_t i = 0; i < fault.ops.size(); ++i) {
      text += fmt::format("  {}{}\n", i == 0 ? "" : "waits for ", describe(program, fault.ops[i]));
    }
    return text + "  waits for the first again\n";
  }

  SetupOptions setup_;
  std::optional<std::string> file_;
};

}  // namespace

std::unique_ptr<Verb> make_check_verb() { return std::make_unique<CheckVerb>(); }

}  // namespace ring
