#include <fmt/format.h>

#include "core/error.h"
#include "core/formats/import/trace_run.h"
#include "core/paths.h"
#include "core/program_text.h"
#include "core/strategy.h"
#include "experiments/json.h"
#include "experiments/run_source.h"
#include "experiments/verb.h"
#include "experiments/why_json.h"
#include "kernels/machine_choice.h"
#include "sim/why.h"

namespace ring {

namespace {

RingProgram program_of_run(const RunFile& file) {
  if (file.identity) return plan(file.identity->problem, file.identity->tuning);
  return parse_program(file.program_text);
}

/// The machine that is named, else the one that was calibrated here, else none.
std::optional<Machine> machine_named(const std::optional<std::string>& text) {
  if (!text && !file_exists(default_machine_path())) return std::nullopt;
  return choose_machine(text.value_or("")).machine;
}

class WhyVerb final : public Verb {
 public:
  std::string_view name() const override { return "why"; }
  std::string_view summary() const override {
    return "Say why a run takes as long as it does, and what would change it";
  }

  bool has_partial_results() const override { return false; }
  void declare(VerbOptions& options) override {
    options.argument("RUN", run_, "Run file, or a Kineto or Chrome trace of a GPU");
    options.text(
        "--machine", machine_, "FILE",
        "Machine it ran on: a machine file, a machine such as h100-sxm-8, or a shape such as\n"
        "dgx-a100:nodes=2 [the profile that ringscope calibrate left]");
    options.flag("--predicted", is_predicted_wanted_,
                 "Explain the predicted times where the file has measured ones too");
    options.flag("--no-what-if", is_brief_, "Leave out what changes would buy");
  }

  int run(VerbContext& context) override {
    Console& console = context.console;
    const RunFile file = read_any_run(run_, console);
    const RingProgram program = program_of_run(file);
    const Timeline& timeline = timeline_of(file);
    if (is_imported(file) && machine_) {
      throw_usage("the run is a trace of others: its ops have no costs on a machine",
                  "leave out --machine");
    }
    const std::optional<Machine> machine =
        is_imported(file) ? std::nullopt : machine_named(machine_);
    const Machine* known = machine ? &*machine : nullptr;
    if (is_imported(file)) {
      console.note("a trace says nothing of costs: sharing and what-if are left out");
    } else if (known == nullptr) {
      console.note("no machine is known: sharing and what-if are left out, give --machine FILE");
    } else if (known->name != file.machine) {
      console.note(fmt::format("the run was made on machine '{}', it is explained with '{}'",
                               file.machine, known->name));
    }
    WhyOptions options;
    options.with_what_if = !is_brief_;
    const Why why = explain_run(program, timeline, known, options);
    if (!why.what_if_missing.empty()) {
      console.note(fmt::format("no what-if: {}", why.what_if_missing));
    }
    if (console.is_json()) {
      Json document = json_document("why");
      document["machine"] = known == nullptr ? Json() : Json(known->name);
      document.update(why_json(why, known));
      console.print_document(document);
      return 0;
    }
    for (const std::string& sentence : why.sentences) console.print(sentence + "\n");
    return 0;
  }

 private:
  const Timeline& timeline_of(const RunFile& file) const {
    if (is_predicted_wanted_ && !file.predicted) {
      throw_usage(fmt::format("{} has no predicted times", run_));
    }
    if (file.measured && !is_predicted_wanted_) return *file.measured;
    if (file.predicted) return *file.predicted;
    throw_usage(fmt::format("{} has no timeline", run_), "run or simulate with -o FILE");
  }

  std::string run_;
  std::optional<std::string> machine_;
  bool is_predicted_wanted_ = false;
  bool is_brief_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_why_verb() { return std::make_unique<WhyVerb>(); }

}  // namespace ring
