// Space-time picture: ranks below each other, time to the right, and what travels between them.
#pragma once

#include <string>

#include "core/ring_program.h"
#include "core/timeline.h"

namespace ring {

struct SpaceTimeOptions {
  std::string title;
  int width = 900;  ///< Pixels.
};

/// Computation as bars in the rank's line, with the shard whose keys are attended to; every message
/// as an arrow from the sender's line when it starts to the receiver's when it ends, in a colour
/// and dash that say what it carries. Throws Error(kUsage) for a timeline of another program or
/// without slices.
std::string space_time_svg(const RingProgram& program, const Timeline& timeline,
                           const SpaceTimeOptions& options = {});

}  // namespace ring
