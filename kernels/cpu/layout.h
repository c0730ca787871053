// Sizes of the scratch arrays of the kernels, and of the pieces a call is cut into.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/attend.h"

namespace ring::cpu {

constexpr int64_t round_up(int64_t value, int64_t to) { return (value + to - 1) / to * to; }

// The widest tile and panel of any instruction set: scratch is sized once for all of them.
inline constexpr int kMaxTileRows = 48;
inline constexpr int kMaxPanel = 8;

// Hands out consecutive aligned pieces of an arena; with a null base it only adds up their size.
class Carver {
 public:
  explicit Carver(std::byte* base) : base_(base) {}

  template <class T>
  T* take(int64_t count) {
    const int64_t at = used_;
    used_ = round_up(used_ + count * static_cast<int64_t>(sizeof(T)), 128);
    return base_ == nullptr ? nullptr : reinterpret_cast<T*>(base_ + at);
  }
  int64_t used_bytes() const { return used_; }

 private:
  std::byte* base_;
  int64_t used_ = 0;
};

// Query rows that one pass over the keys keeps in packed form: as many as fit a core's share of
// the last cache beside the K and V tiles. More rows share the packing of K and V; fewer keep the
// Q tiles near. The result does not depend on it.
inline int64_t rows_per_pass(const AttendShape& shape, const CacheSizes& caches) {
  const int64_t row_bytes = 4 * int64_t{shape.dim_qk + shape.dim_v};
  const int64_t rows = caches.l3_bytes / 2 / row_bytes;
  return std::clamp<int64_t>(rows / kMaxTileRows * kMaxTileRows, 1008, 16128);
}

// At most this many tiles of `width` rows for `rows` consecutive stacked rows (tiles.h).
inline int64_t most_tiles(const AttendShape& shape, int64_t rows, int width) {
  return rows / width + (shape.q_rows >= width ? rows / shape.q_rows : 0) + 2;
}

// At most this many lanes, used or not, in the tiles of any instruction set.
inline int64_t most_lanes(const AttendShape& shape, int64_t rows) {
  const int64_t ends = shape.q_rows >= kMaxTileRows ? kMaxTileRows * (rows / shape.q_rows) : rows;
  return rows + ends + 2 * kMaxTileRows;
}

// Rows stacked for one KV head.
inline int64_t stacked_rows(const AttendShape& shape) {
  return shape.q_rows * (shape.heads / shape.kv_heads);
}

}  // namespace ring::cpu
