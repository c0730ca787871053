// Counts calls of operator new in the whole test program, to show that code does not allocate.
#pragma once

#include <cstdint>

namespace ring::testing_support {

/// Allocations so far; always 0 where a sanitizer owns operator new.
int64_t allocation_count();
bool counts_allocations();

}  // namespace ring::testing_support
