#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "core/counted.h"
#include "core/error.h"
#include "core/formats/file_io.h"
#include "core/formats/program_json.h"
#include "core/formats/space_time_svg.h"
#include "core/legality.h"
#include "core/paths.h"
#include "core/strategy.h"
#include "core/wording.h"
#include "experiments/json.h"
#include "experiments/report.h"
#include "experiments/setup.h"
#include "experiments/strategy_numbers.h"
#include "experiments/verb.h"
#include "kernels/machine_choice.h"
#include "sim/prediction.h"

namespace ring {

namespace {

/// A strategy with what it moves and holds for the problem.
struct Listed {
  StrategyChoice choice;
  StrategyNumbers numbers;
};

class StrategiesVerb final : public Verb {
 public:
  std::string_view name() const override { return "strategies"; }
  std::string_view summary() const override {
    return "List the ways of cutting attention, with what each moves and holds";
  }
  bool has_partial_results() const override { return false; }
  void declare(VerbOptions& options) override {
    setup_.declare_problem(options);
    setup_.declare_tuning_of_all(options);
    setup_.declare_machine(options);
    setup_.declare_scenario(options);
    options.heading("Output");
    options.text("--pictures", pictures_, "FOLDER",
                 "Draw a space-time diagram of every strategy, as simulated on the machine");
  }

  int run(VerbContext& context) override {
    Scenario scenario = setup_.resolve();
    if (!setup_.is_any_given()) scenario.tuning.ranks = kDefaultRanks;
    if (setup_.print_config(scenario, context.console)) return 0;
    std::vector<Listed> listed;
    for (StrategyChoice& choice : choose_strategies(scenario.problem, scenario.tuning)) {
      Listed entry{std::move(choice), {}};
      if (entry.choice.is_legal) {
        const RingProgram program = plan(scenario.problem, entry.choice.tuning);
        entry.numbers = count_numbers(program);
        if (pictures_) draw(program, scenario, context.console);
      }
      listed.push_back(std::move(entry));
    }
    if (context.console.is_json()) {
      print_json(context.console, scenario, listed);
    } else {
      print_text(context.console, scenario, listed);
    }
    return 0;
  }

 private:
  static constexpr int kDefaultRanks = 8;

  void draw(const RingProgram& program, const Scenario& scenario, Console& console) const {
    const MachineChoice machine = choose_machine(scenario.machine);
    const SimulationResult result =
        simulate(program, machine.machine, simulation_options(scenario));
    std::string name = program.tuning.strategy;
    std::replace(name.begin(), name.end(), ':', '-');
    const std::string path = (std::filesystem::path(*pictures_) / (name + ".svg")).string();
    require_place_for(path);
    SpaceTimeOptions options;
    options.title = fmt::format("{}: {}, {}", program.tuning.strategy, program.problem.mask.text(),
                                counted(program.ranks(), "rank"));
    write_file(path, space_time_svg(program, result.timeline, options));
    console.note("wrote " + path);
  }

  static std::string title(const Strategy& strategy) {
    std::string text(strategy.name);
    if (!strategy.parameter.empty()) text += fmt::format(" (:{})", strategy.parameter);
    return text;
  }

  static std::string numbers_text(const StrategyNumbers& numbers) {
    if (numbers.sent_bytes == 0) return "nothing";
    return fmt::format("{} in a step at most, {} in {}", format_bytes(numbers.sent_per_step_bytes),
                       format_bytes(numbers.sent_bytes), counted(numbers.steps, "step"));
  }

  static std::string numbers_line(const Scenario& scenario, const Listed& entry) {
    const std::string other = options_text(scenario.tuning, entry.choice.tuning);
    return fmt::format("{}: a rank sends {}, holds {}", other.empty() ? "as set" : other,
                       numbers_text(entry.numbers), format_bytes(entry.numbers.memory_bytes));
  }

  static void print_text(Console& console, const Scenario& scenario,
                         const std::vector<Listed>& listed) {
    const Style& style = console.style();
    console.print(lines_text(
        {{"problem", describe(scenario.problem)},
         {"tuning",
          fmt::format("{}, {}, blocks of {}", counted(scenario.tuning.ranks, "rank"),
                      scenario.tuning.partition, format_count(scenario.tuning.block_tokens))},
         {"symbols", "S tokens, P ranks, Hq and Hkv heads of D, b bytes a value"}},
        style));
    for (size_t i = 0; i < listed.size(); ++i) {
      const Listed& entry = listed[i];
      const Strategy& strategy = *entry.choice.strategy;
      if (entry.choice.is_variant) continue;  // It stands with the one before it.
      std::vector<ReportLine> lines{{"moves", std::string(strategy.summary)},
                                    {"bytes", std::string(strategy.facts.bytes)},
                                    {"holds", std::string(strategy.facts.memory)},
                                    {"wins", std::string(strategy.facts.wins)}};
      if (!entry.choice.refusal.empty())
        lines.push_back({"not here", entry.choice.refusal, Tone::kWarn});
      if (entry.choice.is_legal)
        lines.push_back({"here", numbers_line(scenario, entry), Tone::kStrong});
      if (i + 1 < listed.size() && listed[i + 1].choice.is_variant)
        lines.push_back({"or", numbers_line(scenario, listed[i + 1]), Tone::kStrong});
      console.print("\n" + style.paint(Tone::kStrong, title(strategy)) + "\n" +
                    lines_text(lines, style));
    }
  }

  static void print_json(Console& console, const Scenario& scenario,
                         const std::vector<Listed>& listed) {
    Json document = json_document("strategies");
    document["problem"] = problem_to_json(scenario.problem);
    document["tuning"] = tuning_to_json(scenario.tuning);
    Json list = Json::array();
    for (const Listed& entry : listed) {
      const Strategy& strategy = *entry.choice.strategy;
      Json item = {{"name", strategy.name},
                   {"summary", strategy.summary},
                   {"parameter", strategy.parameter},
                   {"bytes", strategy.facts.bytes},
                   {"memory", strategy.facts.memory},
                   {"wins", strategy.facts.wins},
                   {"is_legal", entry.choice.refusal.empty()}};
      if (!entry.choice.refusal.empty()) item["refusal"] = entry.choice.refusal;
      if (entry.choice.is_legal) {
        item["tuning"] = tuning_to_json(entry.choice.tuning);
        item["sent_bytes"] = entry.numbers.sent_bytes;
        item["sent_per_step_bytes"] = entry.numbers.sent_per_step_bytes;
        item["steps"] = entry.numbers.steps;
        item["memory_bytes"] = entry.numbers.memory_bytes;
      }
      list.push_back(std::move(item));
    }
    document["strategies"] = list;
    console.print_document(document);
  }

  SetupOptions setup_;
  std::optional<std::string> pictures_;
};

}  // namespace

std::unique_ptr<Verb> make_strategies_verb() { return std::make_unique<StrategiesVerb>(); }

}  // namespace ring
