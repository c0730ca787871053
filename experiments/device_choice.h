// Which devices a verb runs on.
#pragma once

#include <cstdint>
#include <string>

namespace ring {

/// "cpu" or "cuda": throws Error(kUsage) for anything else, and Error(kUnavailable) saying what is
/// missing where nothing can run on CUDA devices.
void require_device(const std::string& device);
/// Throws Error(kUnavailable) for more cores than this process may use.
void require_cores(int64_t cores);

}  // namespace ring
