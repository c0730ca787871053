#include "core/formats/timeline_csv.h"

#include <fmt/format.h>

#include <iterator>

namespace ring {

std::string timeline_csv(std::span<const Timeline* const> timelines) {
  std::string out =
      "origin,rank,index,kind,lane,step,peer,kv_shard,bytes,flops,posted_ps,start_ps,end_ps\n";
  const auto optional = [](int64_t value) {
    return value < 0 ? std::string() : std::to_string(value);
  };
  for (const Timeline* timeline : timelines) {
    const std::string_view origin =
        timeline->origin == TimelineOrigin::kMeasured ? "measured" : "predicted";
    for (const Slice& s : timeline->slices) {
      fmt::format_to(std::back_inserter(out), "{},{},{},{},{},{},{},{},{},{},{},{},{}\n", origin,
                     s.op.rank, s.op.index, name(s.kind), s.lane, s.step, optional(s.peer),
                     optional(s.kv_shard), s.bytes, s.flops, s.posted_ps, s.start_ps, s.end_ps);
    }
  }
  return out;
}

}  // namespace ring
