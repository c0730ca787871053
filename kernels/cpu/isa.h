// The instruction sets that the kernels are compiled for and this CPU can run.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/dtype.h"

namespace ring::cpu {

// Names as Highway prints them ("AVX3", "AVX2", "SSE4", "SCALAR"), best first. One that ends in
// "_BF16" multiplies bf16 tensors in bf16, by instructions for it, instead of widening them to
// fp32.
std::vector<std::string> runnable_isas();

// The one that the next kernel call uses.
std::string current_isa();

// Whether that one multiplies bf16 tensors in bf16, and whether tensors of `dtype` so.
bool uses_bf16_products();
inline bool uses_bf16_products(DType dtype) {
  return dtype == DType::kBF16 && uses_bf16_products();
}

// Restricts every later kernel call of the process to `isa`; "" lifts it. Throws
// Error(kUnavailable) naming the runnable ones. For tests and benchmarks: not while kernels run.
//
// "_BF16" after a name below AVX-512 is taken too: the same products without an instruction for
// them, slower than in fp32, for tests on CPUs that lack it.
void force_isa(std::string_view isa);

// The runnable ones and those whose bf16 products can only be tested.
std::vector<std::string> testable_isas();

}  // namespace ring::cpu
