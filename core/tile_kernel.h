// TileKernel: what a GPU attention kernel costs, from its tiles and the slots that they run in.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace ring {

/// A kernel cuts its output into tiles: of query rows forward, of keys backward. Each tile of each
/// head and batch element is one thread block, and `slots` of them run at once. A tile takes
///   per_tile_s + per_pair_s * (its rows) * (what it goes through, in whole steps)
/// and the kernel
///   launch_s + max(last tile done, bytes / memory_bytes_per_s) + per_row_dim_s * tokens * dim
/// so waves that are not full, the short and long tiles of a causal mask, and a single head too few
/// all show. All rows and dims are of all heads and batch elements.
struct TileKernel {
  int64_t head_dim = 0;
  int64_t tile_rows = 128;     ///< Query rows (forward) or keys (backward) of a tile.
  int64_t step_tokens = 64;    ///< Keys (forward) or rows (backward) that a tile takes at a time.
  int64_t slots = 1;           ///< Tiles that run at once on the whole processor.
  int64_t slots_per_unit = 1;  ///< Of them on one multiprocessor.
  /// How much faster a tile runs that has its multiprocessor to itself, 1 to slots_per_unit.
  double alone_speed = 1;
  bool is_balanced = false;       ///< Persistent blocks share the work evenly instead of in waves.
  bool splits_keys = false;       ///< Cuts keys so that few tiles fill the slots all the same.
  double per_pair_s = 0;          ///< Of one slot.
  double per_tile_s = 0;          ///< Of one slot: prologue and epilogue.
  double per_row_dim_s = 0;       ///< Passes before and after: mean of rows, keys.
  double launch_s = 0;            ///< All launches of the call.
  double memory_bytes_per_s = 0;  ///< For K, V, Q and output once each; 0: never the limit.
};

/// The attention that one call computes. `planes` are the heads of all batch elements.
struct TileWork {
  int64_t rows = 0;       ///< Query rows that see any key.
  int64_t edge_rows = 0;  ///< Of them those that do not see all keys.
  int64_t keys = 0;
  int64_t visible_pairs = 0;  ///< Of one head.
  int64_t planes = 1;
  int64_t planes_per_key_plane = 1;  ///< Query heads that share one KV head.
  int64_t dim = 128;                 ///< Head dim of V.
  double bytes = 0;                  ///< Least traffic: Q, K, V read and the output written.
};

/// The kernel for a head dim: that of the table, or between two of them, or beyond the last one,
/// where seconds of a pair are taken to be linear in the head dim (matrix products grow with it,
/// the softmax does not) and the rest is that of the nearest. `kernels` are sorted by head dim and
/// not empty.
TileKernel kernel_for(std::span<const TileKernel> kernels, int64_t head_dim);

/// Seconds of a forward call. Tiles own query rows and go through the keys they see, in the order
/// in which the hardware hands them out: from the first row to the last, head after head.
double forward_tile_seconds(const TileKernel& kernel, const TileWork& work);
/// Seconds of a backward call: tiles own keys and go through the rows that see them.
double backward_tile_seconds(const TileKernel& kernel, const TileWork& work);

/// When the last of `planes` times the tiles `seconds` starts and is done if every slot takes the
/// next tile when it is free. Exact up to 2048 tiles; beyond, the sum over the slots plus half the
/// last tile (equal tiles are exact always).
struct TileSchedule {
  double last_start_s = 0;
  double done_s = 0;
};
TileSchedule schedule_tiles(std::span<const double> seconds, int64_t planes, int64_t slots);

/// Makes the kernels take `factor` times as long, launches apart.
void scale_time(std::vector<TileKernel>& kernels, double factor);

}  // namespace ring
