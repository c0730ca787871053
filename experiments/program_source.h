// Programs from files: the text form, and Chakra traces of all ranks.
#pragma once

#include <string>

#include "core/ring_program.h"

namespace ring {

/// A program in text form, or the Chakra traces PREFIX.0.et, PREFIX.1.et, ... of which `path` is
/// one. Throws Error(kUsage) naming the file.
RingProgram read_any_program(const std::string& path);

}  // namespace ring
