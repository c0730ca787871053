// Which devices a verb runs on.
#pragma once

#include <cstdint>
#include <string>

#include "core/machine.h"

namespace ring {

/// "cpu" or "cuda": throws Error(kUsage) for anything else, and Error(kUnavailable) saying what is
/// missing where nothing can run on CUDA devices.
void require_device(const std::string& device);
/// Throws Error(kUnavailable) for more cores than this process may use.
void require_cores(int64_t cores);
/// The profile of this machine's cores for a run that uses only `cores` of them: fewer processors,
/// and as much less contention as when the others are idle. Machines with as many or fewer, and
/// those whose messages travel over links, stay as they are.
Machine with_cores(Machine machine, int cores);

}  // namespace ring
