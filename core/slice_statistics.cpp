#include "core/slice_statistics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace ring {
namespace {

struct Durations {
  std::vector<Picoseconds> work, wait;
  Bytes bytes = 0;
  Flops flops = 0;
};

/// Puts the value of the given nearest rank in its place; ranks must be asked for in rising order,
/// so that everything below `from` is already smaller.
Picoseconds at_rank(std::span<Picoseconds> values, double share, size_t& from) {
  const auto n = static_cast<double>(values.size());
  const auto rank = static_cast<size_t>(std::max(1.0, std::ceil(share * n))) - 1;
  const auto begin = values.begin() + static_cast<ptrdiff_t>(from);
  const auto at = values.begin() + static_cast<ptrdiff_t>(rank);
  if (rank >= from) std::nth_element(begin, at, values.end());
  from = rank;
  return *at;
}

}  // namespace

DurationStatistics duration_statistics(std::span<Picoseconds> durations) {
  DurationStatistics result;
  if (durations.empty()) return result;
  result.count = std::ssize(durations);
  __int128 sum = 0;
  for (const Picoseconds duration : durations) sum += duration;
  constexpr __int128 kMost = std::numeric_limits<Picoseconds>::max();
  result.sum_ps = static_cast<Picoseconds>(std::min(sum, kMost));
  result.mean_ps = static_cast<double>(sum) / static_cast<double>(durations.size());
  const auto [least, most] = std::minmax_element(durations.begin(), durations.end());
  result.min_ps = *least;
  result.max_ps = *most;
  size_t from = 0;
  result.p50_ps = at_rank(durations, 0.50, from);
  result.p95_ps = at_rank(durations, 0.95, from);
  result.p99_ps = at_rank(durations, 0.99, from);
  return result;
}

SliceStatistics slice_statistics(const Timeline& timeline, std::span<const uint32_t> slices) {
  std::array<Durations, kOpKinds> kinds;
  std::vector<Picoseconds> work, wait;
  work.reserve(slices.size());
  for (const uint32_t index : slices) {
    const Slice& slice = timeline.slices[index];
    Durations& kind = kinds[static_cast<size_t>(slice.kind)];
    kind.work.push_back(slice.end_ps - slice.start_ps);
    work.push_back(kind.work.back());
    if (slice.start_ps > slice.posted_ps) {
      kind.wait.push_back(slice.start_ps - slice.posted_ps);
      wait.push_back(kind.wait.back());
    }
    kind.bytes += slice.bytes;
    kind.flops += slice.flops;
  }
  SliceStatistics result;
  result.work = duration_statistics(work);
  result.wait = duration_statistics(wait);
  for (size_t k = 0; k < kOpKinds; ++k) {
    if (kinds[k].work.empty()) continue;
    result.kinds.push_back({static_cast<OpKind>(k), duration_statistics(kinds[k].work),
                            duration_statistics(kinds[k].wait), kinds[k].bytes, kinds[k].flops});
  }
  return result;
}

}  // namespace ring
