// Timeline: when every op was done, measured or predicted; both are of this one type.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/ring_program.h"
#include "core/units.h"

namespace ring {

/// One op in time. posted <= start <= end. For send and receive, [posted, start) is waiting for the
/// peer and [start, end) the transfer; for other kinds posted == start.
struct Slice {
  OpId op;
  OpKind kind = OpKind::kCompute;
  int32_t lane = 0;
  int32_t step = 0;
  int32_t peer = -1;
  int32_t kv_shard = -1;
  Bytes bytes = 0;
  Flops flops = 0;
  Picoseconds posted_ps = 0;
  Picoseconds start_ps = 0;
  Picoseconds end_ps = 0;
};

enum class TimelineOrigin { kMeasured, kPredicted };

/// Slices sorted by (rank, lane, start). Times are relative to the common start of the run.
struct Timeline {
  TimelineOrigin origin = TimelineOrigin::kPredicted;
  std::string name;
  int ranks = 0;
  int lanes = 0;
  bool is_complete = true;  ///< False when the run was interrupted: a part of the ops is missing.
  std::vector<Slice> slices;

  /// End of the last slice.
  Picoseconds makespan_ps() const;
};

/// Fills the op-derived fields of a slice.
Slice slice_of(const RingProgram& program, OpId id);
void sort_slices(Timeline& timeline);

}  // namespace ring
