#include "experiments/run_source.h"

#include <fmt/format.h>

#include "core/error.h"
#include "core/formats/import/imported.h"
#include "core/formats/import/trace_run.h"

namespace ring {

RunFile read_any_run(const std::string& path, Console& console) {
  const FileKind kind = detect(head_of_file(path));
  if (kind == FileKind::kKernelTrace) {
    console.note(fmt::format(
        "{} is a trace of others: streams are lanes, and what they wait for is not in it", path));
    return read_traces({path});
  }
  // A broken run file is best explained by the reader of run files.
  if (kind != FileKind::kRunFile && kind != FileKind::kHfConfig && kind != FileKind::kUnknown) {
    throw_usage(fmt::format("{}: {}, which holds no run", path, describe(kind)),
                "take a run file, or a Kineto or Chrome trace");
  }
  return read_run(path);
}

RunFile read_traces(const std::vector<std::string>& paths) {
  std::vector<KernelTrace> traces;
  for (const std::string& path : paths) traces.push_back(read_kernel_trace(path));
  return run_of_traces(traces, paths);
}

}  // namespace ring
