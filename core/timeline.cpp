#include "core/timeline.h"

#include <algorithm>
#include <tuple>

namespace ring {

Picoseconds Timeline::makespan_ps() const {
  Picoseconds end = 0;
  for (const Slice& slice : slices) end = std::max(end, slice.end_ps);
  return end;
}

Slice slice_of(const RingProgram& program, OpId id) {
  const Op& op = program.op(id);
  Slice slice;
  slice.op = id;
  slice.kind = op.kind;
  slice.lane = op.lane;
  slice.step = op.step;
  slice.peer = op.peer;
  slice.kv_shard = op.kv_shard;
  slice.bytes = op.bytes;
  slice.flops = op.flops;
  return slice;
}

void sort_slices(Timeline& timeline) {
  std::sort(timeline.slices.begin(), timeline.slices.end(), [](const Slice& a, const Slice& b) {
    return std::tuple(a.op.rank, a.lane, a.posted_ps, a.op.index) <
           std::tuple(b.op.rank, b.lane, b.posted_ps, b.op.index);
  });
}

}  // namespace ring
