#include <fmt/format.h>

#include "core/error.h"
#include "core/formats/chakra.h"
#include "core/formats/import/trace_run.h"
#include "core/paths.h"
#include "experiments/json.h"
#include "experiments/outputs.h"
#include "experiments/run_source.h"
#include "experiments/verb.h"

namespace ring {

namespace {

class TraceVerb final : public Verb {
 public:
  std::string_view name() const override { return "trace"; }
  std::string_view summary() const override {
    return "Turn a run into a Chrome trace, Chakra traces or a picture";
  }

  bool has_partial_results() const override { return false; }
  void declare(VerbOptions& options) override {
    options.argument("RUN", run_, "Run file, or a Kineto or Chrome trace of a GPU");
    options.heading("Files");
    options.text("--format", format_, "NAME",
                 "chrome: one file for ui.perfetto.dev, .gz packs it\n"
                 "chakra: FILE.0.et, FILE.1.et, ..., one for each rank [chrome]");
    options.text("-o,--output", trace_, "FILE", "Where the trace goes");
    options.text("--svg", svg_, "FILE", "Picture of the timeline");
  }

  int run(VerbContext& context) override {
    if (!trace_ && !svg_) throw_usage("trace has nothing to write", "give -o FILE or --svg FILE");
    const std::string format = format_.value_or("chrome");
    if (format != "chrome" && format != "chakra") {
      throw_usage(fmt::format("--format: there is no format '{}'", format),
                  "formats are chrome and chakra");
    }
    for (const auto* path : {&trace_, &svg_}) {
      if (*path) require_other_file(**path, run_);
    }
    const RunFile run = read_any_run(run_, context.console);
    Json files = Json::array();
    if (trace_) {
      const RingProgram program = program_of(run);
      if (format == "chakra") {
        for (const std::string& path : write_chakra_of(run, program)) files.push_back(path);
      } else {
        write_run_trace(*trace_, run, &program);
        files.push_back(*trace_);
      }
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
  /// Computation lasts as long as it did in the run: measured where there is such a timeline.
  std::vector<std::string> write_chakra_of(const RunFile& run, const RingProgram& program) const {
    if (is_imported(run)) {
      throw_usage(run_ + ": a trace of others names no peers, so its messages cannot be written",
                  "write a Chrome trace");
    }
    if (!run.measured && !run.predicted) throw_usage(run_ + ": the run file has no timeline");
    return write_chakra(*trace_, program, run.measured ? *run.measured : *run.predicted);
  }

  std::string run_;
  std::optional<std::string> format_;
  std::optional<std::string> trace_, svg_;
};

}  // namespace

std::unique_ptr<Verb> make_trace_verb() { return std::make_unique<TraceVerb>(); }

}  // namespace ring
