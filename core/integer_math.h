// Integer arithmetic that the language leaves out.
#pragma once

#include <cstdint>

namespace ring {

/// a / b rounded up; b is positive.
constexpr int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b > 0 ? 1 : 0); }

}  // namespace ring
