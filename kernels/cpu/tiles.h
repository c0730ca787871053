// Tiles of query rows, and the keys that each of them needs.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/attend.h"

namespace ring::cpu {

// Up to a tile's width of stacked rows. Keys outside [hull_begin, hull_end) are seen by none of
// them, keys in [core_begin, core_end) by all.
struct RowTile {
  int64_t first = 0;
  int rows = 0;
  bool fresh = false;  // no row of it has seen a key (kept by the forward pass)
  int32_t hull_begin = 0, hull_end = 0;
  int32_t core_begin = 0, core_end = 0;
};

// Keys of a tile within one block, relative to it: [lo, hi) are needed, [core_lo, core_hi) of them
// need no mask. All are multiples of the panel height.
struct TileKeys {
  int lo = 0, core_lo = 0, core_hi = 0, hi = 0;
  bool empty() const { return lo >= hi; }
};

// The keys that row `row` of a head sees.
inline KeySpan span_of(const AttendShape& shape, const KeySpan* spans, int64_t row) {
  if (spans == nullptr) return {0, static_cast<int32_t>(shape.kv_rows)};
  return spans[row];
}

// Where a stacked row lies: its query head, its row there, and both as one index (head, row).
struct RowPlace {
  int64_t head = 0;
  int64_t row = 0;
  int64_t index = 0;

  // The place of the stacked row after this one.
  RowPlace next(const AttendShape& shape) const {
    const bool last = row + 1 == shape.q_rows;
    return {head + (last ? 1 : 0), last ? 0 : row + 1, index + 1};
  }
};

inline RowPlace place_of(const AttendShape& shape, int kv_head, int64_t stacked_row) {
  const int64_t group = shape.heads / shape.kv_heads;
  const int64_t head = kv_head * group + stacked_row / shape.q_rows;
  const int64_t row = stacked_row % shape.q_rows;
  return {head, row, head * shape.q_rows + row};
}

// The tile that starts at stacked row `first`. Unless the rows of a head are fewer than a tile, a
// tile stays within one head, where neighbours see nearly the same keys.
inline RowTile make_tile(const AttendShape& shape, const KeySpan* spans, int64_t first, int64_t end,
                         int width) {
  RowTile tile;
  tile.first = first;
  int64_t rows = std::min<int64_t>(width, end - first);
  if (shape.q_rows >= width) rows = std::min(rows, shape.q_rows - first % shape.q_rows);
  tile.rows = static_cast<int>(rows);
  tile.hull_begin = INT32_MAX;
  tile.core_end = INT32_MAX;
  int64_t row = first % shape.q_rows;
  for (int i = 0; i < tile.rows; ++i, row = row + 1 == shape.q_rows ? 0 : row + 1) {
    const KeySpan span = span_of(shape, spans, row);
    tile.core_begin = std::max(tile.core_begin, span.begin);
    tile.core_end = std::min(tile.core_end, span.end);
    if (span.begin >= span.end) {
      tile.core_end = 0;
      continue;
    }
    tile.hull_begin = std::min(tile.hull_begin, span.begin);
    tile.hull_end = std::max(tile.hull_end, span.end);
  }
  return tile;
}

// Keys of `tile` in the block of `keys` keys that starts at key `block_begin`.
inline TileKeys keys_in_block(const RowTile& tile, int64_t block_begin, int keys, int panel) {
  const auto local = [&](int64_t key) {
    return static_cast<int>(std::clamp<int64_t>(key - block_begin, 0, keys));
  };
  TileKeys out;
  const int hull_hi = local(tile.hull_end);
  out.lo = local(tile.hull_begin) / panel * panel;
  if (tile.hull_begin >= tile.hull_end || out.lo >= hull_hi) return {};
  out.hi = (hull_hi + panel - 1) / panel * panel;
  out.core_lo = std::min((local(tile.core_begin) + panel - 1) / panel * panel, out.hi);
  out.core_hi = std::max(local(tile.core_end) / panel * panel, out.core_lo);
  out.core_lo = std::max(out.core_lo, out.lo);
  out.core_hi = std::max(out.core_hi, out.core_lo);
  return out;
}

}  // namespace ring::cpu
