// Traces as run files: what ran on the GPUs of each rank, to be shown, compared and explained.
#pragma once

#include <string>
#include <vector>

#include "core/formats/import/kernel_trace.h"
#include "core/formats/run_json.h"

namespace ring {

/// One rank for each trace, in the order of the ranks that they state when all do and no two state
/// the same, else as given. Kernels of communication become receives without a peer, copies stay
/// copies, kernels of attention attends, others computations; names are kept. A lane is a stream of
/// a device; kernels of a stream that overlap get lanes of their own. Each trace begins at 0:
/// clocks of different ranks cannot be compared. A trace does not state what its streams wait for:
/// in the program every op waits for the last one of the other lanes that ended before it began.
/// Throws Error(kUsage) for traces without kernels, and for more than a million in one.
RunFile run_of_traces(const std::vector<KernelTrace>& traces,
                      const std::vector<std::string>& paths);

/// Whether the run was read from traces of others: its program says what was seen, not what to do.
bool is_imported(const RunFile& run);

}  // namespace ring
