// Runs from files: run files of ringscope, and traces of others as measured runs.
#pragma once

#include <string>
#include <vector>

#include "core/formats/run_json.h"
#include "experiments/console.h"

namespace ring {

/// A run file, or a Kineto or Chrome trace read as a measured run (what was assumed goes to
/// stderr). Throws Error(kUsage) for other files.
RunFile read_any_run(const std::string& path, Console& console);

/// Traces of several ranks as one run.
RunFile read_traces(const std::vector<std::string>& paths);

}  // namespace ring
