// MemoryUse: what every rank holds in memory over the time of a run.
#pragma once

#include <vector>

#include "core/ring_program.h"
#include "core/step_curve.h"
#include "core/timeline.h"

namespace ring {

struct RankMemoryUse {
  /// Held from start to end: the home shard, queries, attention states, output and lse.
  Bytes resident_bytes = 0;
  Bytes buffer_bytes = 0;  ///< Room of all receive buffers, whether in use or not.
  /// Resident, plus the blocks in receive buffers: from the start of a transfer until the last op
  /// that reads the buffer is done.
  StepCurve bytes;
  Bytes peak_bytes() const { return static_cast<Bytes>(bytes.peak()); }
};

/// Bytes of queries, home keys and values, states (fp32), output and lse of a rank.
Bytes resident_bytes(const Problem& problem, const RankStorage& storage);

/// By rank. Ops without a slice are taken not to have run. Throws Error(kUsage) when the timeline
/// names ops that the program does not have.
std::vector<RankMemoryUse> memory_use(const RingProgram& program, const Timeline& timeline);

}  // namespace ring
