#include "core/strategy.h"
#include "experiments/json.h"
#include "experiments/table.h"
#include "experiments/verb.h"

namespace ring {

namespace {

class StrategiesVerb final : public Verb {
 public:
  std::string_view name() const override { return "strategies"; }
  std::string_view summary() const override { return "List the ways of cutting attention"; }
  bool has_partial_results() const override { return false; }
  void declare(VerbOptions&) override {}

  int run(VerbContext& context) override {
    Json list = Json::array();
    Table table;
    table.column("strategy", Align::kLeft).column("what moves", Align::kLeft);
    for (const Strategy& strategy : all_strategies()) {
      table.row({{std::string(strategy.name), Tone::kStrong}, std::string(strategy.summary)});
      list.push_back({{"name", strategy.name}, {"summary", strategy.summary}});
    }
    Console& console = context.console;
    if (console.is_json()) {
      Json document = json_document("strategies");
      document["strategies"] = list;
      console.print_document(document);
    } else {
      console.print(table.text(console.style()));
    }
    return 0;
  }
};

}  // namespace

std::unique_ptr<Verb> make_strategies_verb() { return std::make_unique<StrategiesVerb>(); }

}  // namespace ring
