#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "core/counted.h"
#include "core/efficiency.h"
#include "core/error.h"
#include "core/formats/program_json.h"
#include "core/legality.h"
#include "core/program_check.h"
#include "core/strategy.h"
#include "core/wording.h"
#include "experiments/json.h"
#include "experiments/progress.h"
#include "experiments/report.h"
#include "experiments/report_json.h"
#include "experiments/setup.h"
#include "experiments/strategy_numbers.h"
#include "experiments/table.h"
#include "experiments/verb.h"
#include "kernels/machine_choice.h"
#include "sim/prediction.h"

namespace ring {

namespace {

/// One strategy, predicted on the machine.
struct Row {
  StrategyChoice choice;
  std::string refusal;  ///< Why it was not predicted; empty: it was.
  bool is_exact = true;
  StrategyNumbers numbers;
  Picoseconds time_ps = 0;
  PredictedInterval interval;
  Metrics metrics;
  std::string spent_on;  ///< Its bottleneck, in a sentence.

  bool is_ranked(int ranks) const {
    return refusal.empty() && is_exact && choice.tuning.ranks == ranks;
  }
  Picoseconds low_ps() const { return interval.coverage > 0 ? interval.low_ps : time_ps; }
  Picoseconds high_ps() const { return interval.coverage > 0 ? interval.high_ps : time_ps; }
};

class CompareStrategiesVerb final : public Verb {
 public:
  std::string_view name() const override { return "compare-strategies"; }
  std::string_view summary() const override {
    return "Predict every strategy for a problem on a machine, and rank them";
  }

  void declare(VerbOptions& options) override {
    setup_.declare_problem(options);
    setup_.declare_tuning_of_all(options);
    setup_.declare_machine(options);
    setup_.declare_scenario(options);
  }

  int run(VerbContext& context) override {
    const Scenario scenario = setup_.resolve();
    if (setup_.print_config(scenario, context.console)) return 0;
    const MachineChoice machine = choose_machine(scenario.machine);
    std::vector<StrategyChoice> choices = choose_strategies(scenario.problem, scenario.tuning);
    Progress progress(context.console, "compare");
    std::vector<Row> rows;
    for (StrategyChoice& choice : choices) {
      if (context.is_interrupted) break;
      progress.update(static_cast<double>(rows.size()) / static_cast<double>(choices.size()),
                      std::string(choice.strategy->name));
      rows.push_back(row_of(std::move(choice), scenario, machine.machine));
    }
    const int ranks = scenario.tuning.ranks;
    std::stable_sort(rows.begin(), rows.end(), [ranks](const Row& a, const Row& b) {
      if (a.is_ranked(ranks) != b.is_ranked(ranks)) return a.is_ranked(ranks);
      if (a.refusal.empty() != b.refusal.empty()) return a.refusal.empty();
      return a.refusal.empty() && a.time_ps < b.time_ps;
    });
    if (context.console.is_json()) {
      print_json(context.console, scenario, machine, rows, context.is_interrupted);
    } else {
      print_text(context.console, scenario, machine, rows);
    }
    if (context.is_interrupted)
      throw Error(ErrorKind::kInterrupted, "stopped before all strategies were predicted");
    const auto is_refused = [](const Row& row) { return !row.refusal.empty(); };
    if (std::all_of(rows.begin(), rows.end(), is_refused)) {
      throw_usage("no strategy can be predicted: " + rows.front().refusal);
    }
    return 0;
  }

 private:
  static Row row_of(StrategyChoice choice, const Scenario& scenario, const Machine& machine) {
    Row row;
    row.choice = std::move(choice);
    row.refusal = row.choice.is_legal ? std::string() : row.choice.refusal;
    if (!row.refusal.empty()) return row;
    try {
      const RingProgram program = plan(scenario.problem, row.choice.tuning);
      require_sound(program);
      const Prediction prediction = predict(program, machine, simulation_options(scenario));
      row.is_exact = !program.skips_pairs;
      row.numbers = count_numbers(program);
      row.time_ps = prediction.result.makespan_ps;
      row.interval = prediction.interval;
      row.metrics = prediction.result.metrics;
      row.spent_on = bottleneck_sentence(blame_of(program, prediction.result.timeline, machine));
    } catch (const Error& error) {
      row.refusal = error.what();
    }
    return row;
  }

  static std::string on_other_ranks(const Row& row, const Row& best, int ranks) {
    const int own = row.choice.tuning.ranks;
    std::string text = fmt::format("on {} rank{}: {}", own, own == 1 ? "" : "s", row.spent_on);
    if (row.choice.strategy->name != "flash" || !best.is_ranked(ranks)) return text;
    const double efficiency = parallel_efficiency(seconds_from_picoseconds(row.time_ps),
                                                  seconds_from_picoseconds(best.time_ps), ranks);
    return text + fmt::format("; against it {} has an efficiency of {}",
                              best.choice.tuning.strategy, format_percent(efficiency));
  }

  /// Why this one is where it is, compared with the first.
  static std::string reason(const Row& row, const Row& best, int ranks) {
    if (!row.refusal.empty()) return row.refusal;
    if (!row.is_exact) return "not exact: the keys of other ranks are missing";
    if (row.choice.tuning.ranks != ranks) return on_other_ranks(row, best, ranks);
    if (&row == &best) return "its time goes to " + row.spent_on;
    if (row.low_ps() <= best.high_ps())
      return fmt::format("cannot be told from the first: {}", row.spent_on);
    return row.spent_on;
  }

  static std::string verdict(const std::vector<Row>& rows, int ranks) {
    const Row& best = rows.front();
    if (!best.is_ranked(ranks)) return "none of the strategies can run like this";
    size_t equal = 0;
    while (equal + 1 < rows.size() && rows[equal + 1].is_ranked(ranks) &&
           rows[equal + 1].low_ps() <= best.high_ps()) {
      ++equal;
    }
    std::string text = fmt::format("{} is predicted to be the fastest with {}",
                                   best.choice.tuning.strategy, format_time(best.time_ps));
    const char* const as = best.interval.coverage > 0 ? "lie within its interval" : "are as fast";
    if (equal > 0) text += fmt::format("; {} more {}", equal, as);
    const bool has_slower = equal + 1 < rows.size() && rows[equal + 1].is_ranked(ranks);
    if (!has_slower) return text;
    const Row& next = rows[equal + 1];
    return text + fmt::format("; {} takes {:.2f} times as long, spent on {}",
                              next.choice.tuning.strategy,
                              static_cast<double>(next.time_ps) / static_cast<double>(best.time_ps),
                              next.spent_on);
  }

  static void print_text(Console& console, const Scenario& scenario, const MachineChoice& machine,
                         const std::vector<Row>& rows) {
    const Style& style = console.style();
    const int ranks = scenario.tuning.ranks;
    Table table;
    table.column("strategy", Align::kLeft).column("time").column("interval", Align::kLeft);
    table.column("exposed").column("sent").column("memory").column("why", Align::kLeft);
    for (const Row& row : rows) {
      const bool is_ranked = row.is_ranked(ranks);
      const bool is_first = &row == &rows.front() && is_ranked;
      const std::string why = reason(row, rows.front(), ranks);
      const Cell name{row.choice.tuning.strategy, is_first ? Tone::kStrong : Tone::kPlain};
      if (!row.refusal.empty()) {
        table.row({name, "-", "", "", "", "", {why, Tone::kDim}});
        continue;
      }
      const std::string interval = row.interval.coverage > 0
                                       ? fmt::format("{} .. {}", format_time(row.interval.low_ps),
                                                     format_time(row.interval.high_ps))
                                       : "";
      table.row({name, format_time(row.time_ps), interval, duration_text(row.metrics.exposed_ps),
                 format_bytes(row.numbers.sent_bytes), format_bytes(row.numbers.memory_bytes),
                 why});
    }
    console.print(lines_text(
        {{"problem", describe(scenario.problem)},
         {"tuning",
          fmt::format("{}, {}, blocks of {}, depth {}", counted(ranks, "rank"),
                      scenario.tuning.partition, format_count(scenario.tuning.block_tokens),
                      scenario.tuning.pipeline_depth)},
         {"machine", machine.note}},
        style));
    console.print("\n" + table.text(style));
    console.print("\n" + verdict(rows, ranks) + "\n");
  }

  static void print_json(Console& console, const Scenario& scenario, const MachineChoice& machine,
                         const std::vector<Row>& rows, bool is_partial) {
    const int ranks = scenario.tuning.ranks;
    Json document = json_document("strategy-comparison");
    document["problem"] = problem_to_json(scenario.problem);
    document["tuning"] = tuning_to_json(scenario.tuning);
    document["machine"] = machine_choice_json(machine);
    document["partial"] = is_partial;
    Json list = Json::array();
    int rank = 0;
    for (const Row& row : rows) {
      Json item = {{"strategy", row.choice.tuning.strategy},
                   {"tuning", tuning_to_json(row.choice.tuning)}};
      if (row.is_ranked(ranks)) item["rank"] = ++rank;
      item["why"] = reason(row, rows.front(), ranks);
      if (!row.refusal.empty()) {
        item["refusal"] = row.refusal;
        list.push_back(std::move(item));
        continue;
      }
      item["is_exact"] = row.is_exact;
      item["time_ps"] = row.time_ps;
      if (row.interval.coverage > 0) {
        item["interval"] = {{"coverage", row.interval.coverage},
                            {"low_ps", row.interval.low_ps},
                            {"high_ps", row.interval.high_ps},
                            {"is_extrapolated", row.interval.is_extrapolated}};
      }
      item["exposed_ps"] = row.metrics.exposed_ps;
      item["sent_bytes"] = row.numbers.sent_bytes;
      item["sent_per_step_bytes"] = row.numbers.sent_per_step_bytes;
      item["memory_bytes"] = row.numbers.memory_bytes;
      list.push_back(std::move(item));
    }
    document["strategies"] = list;
    document["verdict"] = rows.empty() ? "" : verdict(rows, ranks);
    console.print_document(document);
  }

  SetupOptions setup_;
};

}  // namespace

std::unique_ptr<Verb> make_compare_strategies_verb() {
  return std::make_unique<CompareStrategiesVerb>();
}

}  // namespace ring
