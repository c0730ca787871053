#include "core/tile_kernel.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "core/error.h"
#include "core/integer_math.h"

namespace ring {
namespace {

constexpr int64_t kExactTiles = 2048;
/// Tiles of one plane that are told apart; longer planes are sampled.
constexpr int64_t kDistinctTiles = 1024;
/// Share of the slots that must be empty before keys are split (flash-attention's heuristic).
constexpr double kSplitBelow = 0.8;
/// What split tiles reach of full slots, the combining pass included.
constexpr double kSplitEfficiency = 0.85;

double real(int64_t value) { return static_cast<double>(value); }

/// What the tokens of the owning side see of the other side: from `first` (of the first token) to
/// `last` (of the last), linearly, over the `edges` tokens at one end; the others see everything.
struct Profile {
  int64_t tokens = 0;  ///< Of the side that owns tiles.
  int64_t edges = 0;
  double low = 0, high = 0;  ///< Of the edge tokens.
  bool edges_first = true;
  double full = 0;
};

/// Rows that all see the same number of keys make the pairs a multiple of the rows; a triangle over
/// an even number of rows does not.
bool is_uniform(const TileWork& work) {
  return work.edge_rows == 0 ||
         (work.edge_rows == work.rows && work.rows % 2 == 0 && work.visible_pairs % work.rows == 0);
}

Profile edge_profile(int64_t tokens, int64_t edges, double full, double edge_pairs,
                     bool edges_first) {
  Profile profile{tokens, edges, 0, 0, edges_first, full};
  if (edges == 0) return profile;
  const double mean = edge_pairs / real(edges);
  profile.high = std::min(full, 2 * mean);
  profile.low = std::max(0.0, 2 * mean - profile.high);
  return profile;
}

Profile forward_profile(const TileWork& work) {
  const double keys = real(work.keys);
  if (is_uniform(work)) {
    return {work.rows, 0, 0, 0, true, real(work.visible_pairs) / real(work.rows)};
  }
  const double inner = real(work.rows - work.edge_rows) * keys;
  return edge_profile(work.rows, work.edge_rows, keys, real(work.visible_pairs) - inner, true);
}

/// Keys at the start of a causal block are seen by most rows.
Profile backward_profile(const TileWork& work) {
  const double rows = real(work.rows);
  if (is_uniform(work))
    return {work.keys, 0, 0, 0, false, real(work.visible_pairs) / real(work.keys)};
  const int64_t edges = std::min(work.keys, work.edge_rows);
  const double inner = real(work.keys - edges) * rows;
  return edge_profile(work.keys, edges, rows, real(work.visible_pairs) - inner, false);
}

/// Tokens of the other side that the tile which ends with token `last` goes through.
double seen_by(const Profile& profile, int64_t last) {
  const int64_t first_edge = profile.edges_first ? 0 : profile.tokens - profile.edges;
  if (profile.edges == 0 || last < first_edge || last >= first_edge + profile.edges) {
    return profile.full;
  }
  const double at = real(last - first_edge + 1) / real(profile.edges);
  return profile.edges_first ? profile.low + (profile.high - profile.low) * at
                             : profile.high - (profile.high - profile.low) * at;
}

/// Seconds of the tiles of one plane; of equal ones a single one, of many a sample.
std::vector<double> tile_seconds(const TileKernel& kernel, const Profile& profile,
                                 bool is_forward) {
  const int64_t tiles = ceil_div(profile.tokens, kernel.tile_rows);
  const int64_t kept = profile.edges == 0 ? 1 : std::min(tiles, kDistinctTiles);
  std::vector<double> seconds;
  seconds.reserve(static_cast<size_t>(kept));
  for (int64_t i = 0; i < kept; ++i) {
    const int64_t tile = i * tiles / kept;
    const int64_t begin = tile * kernel.tile_rows;
    const int64_t end = std::min(begin + kernel.tile_rows, profile.tokens);
    // The longest line of the tile decides: its last row forward, its first key backward.
    const double seen = seen_by(profile, is_forward ? end - 1 : begin);
    const double steps = std::ceil(seen / real(kernel.step_tokens) - 1e-9);
    seconds.push_back(kernel.per_tile_s + kernel.per_pair_s * real(kernel.tile_rows) * steps *
                                              real(kernel.step_tokens));
  }
  return seconds;
}

/// Equal tiles in waves; those of a last wave that leaves units half empty run faster.
TileSchedule equal_tiles(const TileKernel& kernel, double seconds, int64_t count) {
  const int64_t units = kernel.slots / kernel.slots_per_unit;
  const int64_t full = count / kernel.slots, rest = count % kernel.slots;
  const double full_s = real(full) * seconds;
  if (rest == 0) return {full_s - seconds, full_s};
  const double speed =
      std::clamp(kernel.alone_speed, 1.0, real(std::max<int64_t>(kernel.slots_per_unit, 1)));
  return {full_s, full_s + (rest <= units ? seconds / speed : seconds)};
}

TileSchedule run_tiles(const TileKernel& kernel, const Profile& profile, int64_t planes,
                       bool is_forward) {
  const std::vector<double> seconds = tile_seconds(kernel, profile, is_forward);
  const int64_t tiles = ceil_div(profile.tokens, kernel.tile_rows);
  const auto kept = static_cast<int64_t>(seconds.size());
  const double sum = std::accumulate(seconds.begin(), seconds.end(), 0.0) * real(tiles) /
                     real(kept) * real(planes);
  const double even = sum / real(kernel.slots);
  const bool splits = kernel.splits_keys && real(planes * tiles) < kSplitBelow * real(kernel.slots);
  if (splits) return {0, even / kSplitEfficiency};
  const double longest = *std::max_element(seconds.begin(), seconds.end());
  if (kernel.is_balanced) return {0, std::max(even, longest)};
  if (kept == 1) return equal_tiles(kernel, longest, planes * tiles);
  TileSchedule schedule =
      schedule_tiles(seconds, std::max<int64_t>(planes * tiles / kept, 1), kernel.slots);
  if (schedule.done_s < even) {  // A sample of the tiles misses a part.
    schedule.last_start_s += even - schedule.done_s;
    schedule.done_s = even;
  }
  return schedule;
}

/// Query heads that share keys fill a tile together when a head alone has too few rows.
TileWork pack_heads(const TileKernel& kernel, TileWork work) {
  if (work.planes_per_key_plane <= 1) return work;
  if (work.rows * work.planes_per_key_plane > kernel.tile_rows) return work;
  work.planes = ceil_div(work.planes, work.planes_per_key_plane);
  work.rows *= work.planes_per_key_plane;
  work.edge_rows *= work.planes_per_key_plane;
  work.visible_pairs *= work.planes_per_key_plane;
  work.planes_per_key_plane = 1;
  return work;
}

double finish(const TileKernel& kernel, const TileWork& work, double tiles_s) {
  const double memory_s =
      kernel.memory_bytes_per_s > 0 ? work.bytes / kernel.memory_bytes_per_s : 0;
  return kernel.launch_s + std::max(tiles_s, memory_s) +
         kernel.per_row_dim_s * real(work.rows + work.keys) / 2 * real(work.planes) *
             real(work.dim);
}

}  // namespace

TileSchedule schedule_tiles(std::span<const double> seconds, int64_t planes, int64_t slots) {
  RING_ASSERT(!seconds.empty() && slots > 0);
  const auto [low, high] = std::minmax_element(seconds.begin(), seconds.end());
  const auto count = static_cast<int64_t>(seconds.size()) * planes;
  if (*low == *high) {
    const double waves = real(ceil_div(count, slots));
    return {*high * (waves - 1), *high * waves};
  }
  if (count > kExactTiles) {
    const double sum = std::accumulate(seconds.begin(), seconds.end(), 0.0);
    const double done = std::max(*high, sum * real(planes) / real(slots) + seconds.back() / 2);
    return {std::max(0.0, done - seconds.back()), done};
  }
  std::vector<double> free_at(static_cast<size_t>(slots), 0.0);  // A heap, earliest on top.
  TileSchedule schedule;
  for (int64_t plane = 0; plane < planes; ++plane) {
    for (const double tile : seconds) {
      std::pop_heap(free_at.begin(), free_at.end(), std::greater<>());
      schedule.last_start_s = free_at.back();
      free_at.back() += tile;
      schedule.done_s = std::max(schedule.done_s, free_at.back());
      std::push_heap(free_at.begin(), free_at.end(), std::greater<>());
    }
  }
  return schedule;
}

TileKernel kernel_for(std::span<const TileKernel> kernels, int64_t head_dim) {
  RING_ASSERT(!kernels.empty());
  const auto above = std::find_if(kernels.begin(), kernels.end(), [&](const TileKernel& kernel) {
    return kernel.head_dim >= head_dim;
  });
  if (above != kernels.end() && above->head_dim == head_dim) return *above;
  if (kernels.size() == 1) {
    TileKernel only = kernels.front();
    only.per_pair_s *= real(head_dim) / real(only.head_dim);
    only.head_dim = head_dim;
    return only;
  }
  size_t right =
      above == kernels.end() ? kernels.size() - 1 : static_cast<size_t>(above - kernels.begin());
  right = std::max<size_t>(right, 1);
  const TileKernel& a = kernels[right - 1];
  const TileKernel& b = kernels[right];
  const bool is_nearer_a = head_dim - a.head_dim < b.head_dim - head_dim;
  TileKernel kernel = is_nearer_a ? a : b;
  // Seconds of a pair on the whole processor, since kernels differ in their slots.
  const double whole_a = a.per_pair_s / real(a.slots), whole_b = b.per_pair_s / real(b.slots);
  const double slope = (whole_b - whole_a) / real(b.head_dim - a.head_dim);
  const double whole = whole_a + slope * real(head_dim - a.head_dim);
  // A slope that another tile shape makes must not lead below what the dims alone would say.
  const double least = std::min(whole_a * real(head_dim) / real(a.head_dim), whole_a);
  kernel.per_pair_s = std::max(whole, least) * real(kernel.slots);
  kernel.head_dim = head_dim;
  return kernel;
}

double forward_tile_seconds(const TileKernel& kernel, const TileWork& given) {
  if (given.rows == 0 || given.keys == 0 || given.planes == 0) return kernel.launch_s;
  const TileWork work = pack_heads(kernel, given);
  return finish(kernel, work, run_tiles(kernel, forward_profile(work), work.planes, true).done_s);
}

double backward_tile_seconds(const TileKernel& kernel, const TileWork& work) {
  if (work.rows == 0 || work.keys == 0 || work.planes == 0) return kernel.launch_s;
  return finish(kernel, work, run_tiles(kernel, backward_profile(work), work.planes, false).done_s);
}

void scale_time(std::vector<TileKernel>& kernels, double factor) {
  for (TileKernel& kernel : kernels) {
    kernel.per_pair_s *= factor;
    kernel.per_tile_s *= factor;
    kernel.per_row_dim_s *= factor;
    kernel.memory_bytes_per_s /= factor;
  }
}

}  // namespace ring
