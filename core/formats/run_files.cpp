#include "core/formats/run_files.h"

#include <fmt/format.h>

#include <vector>

#include "core/build_info.h"
#include "core/error.h"
#include "core/formats/chrome_trace.h"
#include "core/formats/file_io.h"
#include "core/formats/gantt_svg.h"
#include "core/program_text.h"
#include "core/strategy.h"
#include "core/wording.h"

namespace ring {

RunFile begin_run_file(const RingProgram& program, const std::string& machine_name) {
  RunFile run;
  if (program.has_attention) {
    run.name = fmt::format("{}; {}", describe(program.problem), describe(program.tuning));
    run.identity = ProgramIdentity{program.problem, program.tuning};
  } else {
    run.name = program.name.empty() ? "program" : program.name;
    run.program_text = program_text(program);
  }
  run.machine = machine_name;
  run.context["version"] = std::string(kVersion);
  return run;
}

void write_run_trace(const std::string& path, const RunFile& run, const RingProgram* program) {
  std::vector<TraceInput> inputs;
  const OpNames* names = run.op_names.empty() ? nullptr : &run.op_names;
  if (run.measured) inputs.push_back({&*run.measured, program, names, run.measured_counters});
  if (run.predicted) inputs.push_back({&*run.predicted, program, nullptr});
  if (inputs.empty()) throw_usage("the run file has no timeline");
  write_chrome_trace(path, inputs);
}

void write_run_picture(const std::string& path, const RunFile& run) {
  const Timeline* measured = run.measured ? &*run.measured : nullptr;
  const Timeline* predicted = run.predicted ? &*run.predicted : nullptr;
  if (measured == nullptr && predicted == nullptr) throw_usage("the run file has no timeline");
  GanttOptions options;
  options.title = run.name;
  write_file(path, gantt_svg(measured, predicted, options));
}

RingProgram program_of(const RunFile& run) {
  return run.identity ? plan(run.identity->problem, run.identity->tuning)
                      : parse_program(run.program_text);
}

}  // namespace ring
