#include <fmt/format.h>

#include "core/comparison.h"
#include "core/error.h"
#include "experiments/json.h"
#include "experiments/report.h"
#include "experiments/report_json.h"
#include "experiments/run_source.h"
#include "experiments/verb.h"

namespace ring {

namespace {

/// Two timelines to be compared and what to call them.
struct Pair {
  const Timeline* first = nullptr;
  const Timeline* second = nullptr;
  std::string first_name, second_name;
};

class CompareVerb final : public Verb {
 public:
  std::string_view name() const override { return "compare"; }
  std::string_view summary() const override {
    return "Compare two run files, or what was measured and predicted in one";
  }

  bool has_partial_results() const override { return false; }
  void declare(VerbOptions& options) override {
    options.argument("A", first_,
                     "Run file or Kineto trace; of two, the measured times of this one are wanted");
    options.optional_argument("B", second_, "Run file or trace with the times to compare with");
  }

  int run(VerbContext& context) override {
    Console& console = context.console;
    const RunFile a = read_any_run(first_, console);
    std::optional<RunFile> b;
    if (second_) b = read_any_run(*second_, console);
    const Pair pair = b ? pair_of(a, *b) : pair_within(a);
    const Comparison comparison = compare(*pair.first, *pair.second);
    const bool is_partial = !pair.first->is_complete || !pair.second->is_complete;
    if (console.is_json()) {
      Json document = json_document("comparison");
      document["first"] = pair.first_name;
      document["second"] = pair.second_name;
      document["partial"] = is_partial;
      document["comparison"] = comparison_json(comparison);
      console.print_document(document);
      return 0;
    }
    if (is_partial)
      console.note("a run was stopped before it was complete: its times are no result");
    console.print(comparison_table(comparison, pair.first_name, pair.second_name, console.style()));
    if (comparison.only_measured + comparison.only_predicted > 0) {
      console.print(fmt::format("\n  {} ops only in {}, {} only in {}: not compared\n",
                                comparison.only_measured, pair.first_name,
                                comparison.only_predicted, pair.second_name));
    }
    return 0;
  }

 private:
  Pair pair_within(const RunFile& run) const {
    if (!run.measured || !run.predicted) {
      throw_usage(fmt::format("{} has only {} times", first_,
                              run.measured    ? "measured"
                              : run.predicted ? "predicted"
                                              : "no"),
                  "give a second run file to compare with");
    }
    return {&*run.measured, &*run.predicted, "measured", "predicted"};
  }

  /// Measured against predicted where the files have both, else what each has.
  Pair pair_of(const RunFile& a, const RunFile& b) const {
    if (a.measured && b.predicted && !b.measured) {
      return {&*a.measured, &*b.predicted, "measured", "predicted"};
    }
    if (b.measured && a.predicted && !a.measured) {
      return {&*b.measured, &*a.predicted, "measured", "predicted"};
    }
    return {timeline_of(a, first_), timeline_of(b, *second_), first_, *second_};
  }

  static const Timeline* timeline_of(const RunFile& run, const std::string& path) {
    if (run.measured) return &*run.measured;
    if (run.predicted) return &*run.predicted;
    throw_usage(fmt::format("{} has no timeline", path));
  }

  std::string first_;
  std::optional<std::string> second_;
};

}  // namespace

std::unique_ptr<Verb> make_compare_verb() { return std::make_unique<CompareVerb>(); }

}  // namespace ring
