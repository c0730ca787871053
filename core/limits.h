// Limits that hold however a tuning is stated: by options, in a scenario, in a run file.
#pragma once

#include <cstdint>

namespace ring {

/// More would take gigabytes for the ranks alone.
inline constexpr int64_t kMostRanks = 1 << 17;

}  // namespace ring
