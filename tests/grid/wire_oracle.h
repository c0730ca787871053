// What a strategy must put on the wire, counted token by token from what its page says.
#pragma once

#include "core/ring_program.h"

namespace ring::testing_support {

/// Bytes that all ranks send in one pass together, of a program that is not deterministic.
Bytes wire_bytes(const RingProgram& program);

}  // namespace ring::testing_support
