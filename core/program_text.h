// The text form of a RingProgram: one op a line, for tests, for reading and for programs by hand.
#pragma once

#include <string>
#include <string_view>

#include "core/ring_program.h"

namespace ring {

/// Format (blank lines and text after '#' are skipped):
///   ranks 3
///   lanes 3
///   r0 L1 send to=1 msg=0 bytes=1024 eager        # id r0:0, lane 1
///   r0 L2 receive from=2 msg=0 bytes=1024 buffer=0 after=r0:0
///   r0 L0 attend shard=2 kv=0..64 q=0..64 buffer=0 after=r0:1
///   r0 L0 compute time=5ms
/// Ops of a rank are numbered from 0 in the order of their lines; `after` takes ids of earlier ops
/// of the same rank, separated by commas. Ranks times lanes may be as many
/// as the text has bytes, and 64Ki more. Throws Error(kUsage) with the line number.
RingProgram parse_program(std::string_view text);
/// Reads back to an equal program.
std::string program_text(const RingProgram& program);

}  // namespace ring
