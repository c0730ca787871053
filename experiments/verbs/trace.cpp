#include <fmt/format.h>

#include "core/error.h"
#include "core/formats/run_json.h"
#include "experiments/json.h"
#include "experiments/outputs.h"
#include "experiments/verb.h"

namespace ring {

namespace {

class TraceVerb final : public Verb {
 public:
  std::string_view name() const override { return "trace"; }
  std::string_view summary() const override {
    return "Turn a run file into a Chrome trace or a picture";
  }

  bool has_partial_results() const override { return false; }
  void declare(VerbOptions& options) override {
    options.argument("RUN", run_, "Run file");
    options.heading("Files");
    options.text("-o,--output", trace_, "FILE", "Chrome trace for ui.perfetto.dev; .gz packs it");
    options.text("--svg", svg_, "FILE", "Picture of the timeline");
  }

  int run(VerbContext& context) override {
    if (!trace_ && !svg_) throw_usage("trace has nothing to write", "give -o FILE or --svg FILE");
    const RunFile run = read_run(run_);
    Json files = Json::array();
    if (trace_) {
      const RingProgram program = program_of(run);
      write_run_trace(*trace_, run, &program);
      files.push_back(*trace_);
    }
    if (svg_) {
      write_run_picture(*svg_, run);
      files.push_back(*svg_);
    }
    Console& console = context.console;
    if (console.is_json()) {
      Json document = json_document("trace-report");
      document["files"] = files;
      console.print_document(document);
    } else {
      for (const Json& file : files) {
        console.note(fmt::format("wrote {}", file.get<std::string>()));
      }
    }
    return 0;
  }

 private:
  std::string run_;
  std::optional<std::string> trace_, svg_;
};

}  // namespace

std::unique_ptr<Verb> make_trace_verb() { return std::make_unique<TraceVerb>(); }

}  // namespace ring
