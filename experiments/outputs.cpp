#include "experiments/outputs.h"

#include <fmt/format.h>

#include "core/error.h"
#include "core/formats/run_files.h"
#include "core/paths.h"

namespace ring {

void OutputOptions::declare(VerbOptions& options) {
  options.heading("Files");
  options.text("-o,--output", run_, "FILE", "Write the run file, JSON");
  options.text("--trace", trace_, "FILE", "Write a Chrome trace for ui.perfetto.dev, .gz packs it");
  options.text("--svg", svg_, "FILE", "Write a picture of the timeline");
}

void OutputOptions::require_places() const {
  if ((run_ && (run_ == trace_ || run_ == svg_)) || (trace_ && trace_ == svg_)) {
    throw_usage(fmt::format("two of --output, --trace and --svg are {}",
                            run_ && (run_ == trace_ || run_ == svg_) ? *run_ : *trace_));
  }
  for (const auto* path : {&run_, &trace_, &svg_}) {
    if (*path) require_place_for(**path);
  }
}

void OutputOptions::write(const RunFile& run, const RingProgram& program, Console& console) const {
  const auto said = [&console](const std::string& path, const char* what) {
    console.note(fmt::format("wrote {} ({})", path, what));
  };
  if (run_) {
    write_run(*run_, run);
    said(*run_, "run file");
  }
  if (trace_) {
    write_run_trace(*trace_, run, &program);
    said(*trace_, "trace, open it at ui.perfetto.dev");
  }
  if (svg_) {
    write_run_picture(*svg_, run);
    said(*svg_, "picture");
  }
}

}  // namespace ring
