// The instruction sets that the kernels are compiled for and this CPU can run.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ring::cpu {

// Names as Highway prints them ("AVX3", "AVX2", "SSE4", "SCALAR"), best first.
std::vector<std::string> runnable_isas();

// The one that the next kernel call uses.
std::string current_isa();

// Restricts every later kernel call of the process to `isa`; "" lifts it. Throws
// Error(kUnavailable) naming the runnable ones. For tests and benchmarks: not while kernels run.
void force_isa(std::string_view isa);

}  // namespace ring::cpu
