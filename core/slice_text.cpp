#include "core/slice_text.h"

#include <fmt/format.h>

#include "core/units.h"

namespace ring {
namespace {

std::string rate_of(int64_t amount, Picoseconds time_ps, std::string (*format)(double)) {
  if (time_ps <= 0) return {};
  return " at " + format(static_cast<double>(amount) / seconds_from_picoseconds(time_ps));
}

std::string comparison(const Slice& slice, TimelineOrigin origin, const Slice& other) {
  const bool is_measured = origin == TimelineOrigin::kMeasured;
  const Picoseconds own_ps = slice.end_ps - slice.start_ps;
  const Picoseconds other_ps = other.end_ps - other.start_ps;
  const Picoseconds measured_ps = is_measured ? own_ps : other_ps;
  const Picoseconds predicted_ps = is_measured ? other_ps : own_ps;
  std::string text =
      fmt::format("{} {}", is_measured ? "predicted" : "measured", format_time(other_ps));
  if (measured_ps > 0) {
    text += fmt::format(
        " (the prediction is {:+.1f} % off)",
        100 * (static_cast<double>(predicted_ps) / static_cast<double>(measured_ps) - 1));
  }
  return text;
}

}  // namespace

std::string slice_title(const Slice& slice) {
  std::string title(name(slice.kind));
  if (slice.kind == OpKind::kSend && slice.peer >= 0) title += fmt::format(" to {}", slice.peer);
  if (slice.kind == OpKind::kReceive && slice.peer >= 0) {
    title += fmt::format(" from {}", slice.peer);
  }
  if (slice.kv_shard >= 0) title += fmt::format(", KV {}", slice.kv_shard);
  return title;
}

std::vector<std::string> describe_slice(const Slice& slice, TimelineOrigin origin,
                                        const Slice* other) {
  const Picoseconds work_ps = slice.end_ps - slice.start_ps;
  std::vector<std::string> lines;
  lines.push_back(fmt::format("{} ({}) on rank {}, op r{}:{}, step {}", slice_title(slice),
                              origin == TimelineOrigin::kMeasured ? "measured" : "predicted",
                              slice.op.rank, slice.op.rank, slice.op.index, slice.step));
  lines.push_back(fmt::format("takes {}, from {} to {}", format_time(work_ps),
                              format_time(slice.start_ps), format_time(slice.end_ps)));
  if (slice.start_ps > slice.posted_ps) {
    lines.push_back(fmt::format("waited {} before", format_time(slice.start_ps - slice.posted_ps)));
  }
  if (other != nullptr) lines.push_back(comparison(slice, origin, *other));
  if (slice.bytes > 0) {
    lines.push_back(format_bytes(slice.bytes) + rate_of(slice.bytes, work_ps, format_bandwidth));
  }
  if (slice.flops > 0) {
    lines.push_back(fmt::format("{:.4g} GFLOP", static_cast<double>(slice.flops) * 1e-9) +
                    rate_of(slice.flops, work_ps, format_flop_rate));
  }
  return lines;
}

}  // namespace ring
