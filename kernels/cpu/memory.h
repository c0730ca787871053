// Copies of whole buffers between lanes.
#pragma once

#include <cstdint>

#include "kernels/cpu/workspace.h"

namespace ring::cpu {

// Copies `bytes` bytes between buffers that do not overlap. A copy too large for the core's share
// of the caches bypasses them with non-temporal stores: it need not read the target first, and what
// the caches hold stays there.
void copy_bytes(void* to, const void* from, int64_t bytes, const CacheSizes& caches);

}  // namespace ring::cpu
