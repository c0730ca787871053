// Tile: rows of 16-bit elements in shared memory, swizzled so that no access meets a bank conflict.
#pragma once

#include <cstdint>

#include "kernels/simt/macros.h"
#include "kernels/simt/types.h"

namespace ring::cuda {

inline constexpr int kChunk = 8;  ///< Elements of 16 bytes.

/// (row, dim) cut into panels of 64 columns, or 32 where 64 does not divide the dim, one after the
/// other. Within a panel the 16-byte chunk c of a row stands at place c ^ f(row): eight rows of
/// one chunk, which ldmatrix reads at once, and eight chunks, which a copy writes at once, then lie
/// in different banks. A tile begins at a multiple of 1024 bytes.
template <int kRowsOf, int kDimOf>
struct Tile {
  static constexpr int kRows = kRowsOf;
  static constexpr int kDim = kDimOf;
  static constexpr int kPanel = kDim % 64 == 0 ? 64 : 32;
  static constexpr int kRowChunks = kPanel / kChunk;
  static constexpr int kRowBytes = kPanel * 2;
  static constexpr int kPanelBytes = kRows * kRowBytes;
  static constexpr int kBytes = kRows * kDim * 2;
  static_assert(kDim % kPanel == 0 && kBytes % 1024 == 0);

  /// Depends on the row modulo 8 alone.
  RING_BOTH static constexpr uint32_t swizzle(uint32_t row) {
    return kPanel == 64 ? row % 8 : row / 2 % 4;
  }
  /// Byte offset of a chunk of the first panel.
  RING_BOTH static constexpr uint32_t at(uint32_t row, uint32_t chunk) {
    return row * kRowBytes + (chunk ^ swizzle(row)) * simt::kCopyBytes;
  }
};

/// Addresses of chunks whose row and number are a part of the lane's own plus a part known when
/// compiling: a multiple of 8 for the row, a multiple of 2 for the chunk, whose own part is 0 or 1.
/// Then the known parts are an offset and one bit operation on the address of the own parts.
template <class T>
class TileAddress {
 public:
  RING_DEVICE TileAddress(simt::SharedAddress tile, uint32_t row, uint32_t chunk)
      : own_(tile + T::at(row, chunk)) {}
  RING_DEVICE simt::SharedAddress at(int row, int chunk) const {
    const int bits = chunk % T::kRowChunks * simt::kCopyBytes;
    const int offset = row * T::kRowBytes + chunk / T::kRowChunks * T::kPanelBytes;
    return (own_ ^ static_cast<uint32_t>(bits)) + static_cast<uint32_t>(offset);
  }

 private:
  simt::SharedAddress own_;
};

/// Starts copying rows [first, first + kRows) of a (token, dim) matrix into a tile; rows from
/// `rows` on become zeros. All `kThreads` threads of the block take part.
template <class T, int kThreads, class Lane>
RING_DEVICE void copy_tile(Lane& lane, simt::SharedAddress tile, const uint16_t* matrix,
                           int64_t token_stride, int first, int rows) {
  constexpr int kRowsAtOnce = kThreads / T::kRowChunks;
  constexpr int kPasses = (T::kRows + kRowsAtOnce - 1) / kRowsAtOnce;
  static_assert(kRowsAtOnce % 8 == 0 && T::kRows % 8 == 0);
  const auto thread = static_cast<uint32_t>(lane.fresh(lane.thread()));
  const uint32_t chunk = thread % T::kRowChunks, row = thread / T::kRowChunks;
  const simt::SharedAddress to = tile + T::at(row, chunk);
  const int rows_left = rows - first - static_cast<int>(row);
  const uint16_t* from = matrix + (first + static_cast<int>(row)) * token_stride + chunk * kChunk;
  RING_UNROLL
  for (int pass = 0; pass < kPasses; ++pass, from += kRowsAtOnce * token_stride) {
    // Fewer rows than the threads could copy at once: whole warps stay out.
    constexpr bool kIsEven = T::kRows % kRowsAtOnce == 0;
    if (!kIsEven && static_cast<int>(row) + pass * kRowsAtOnce >= T::kRows) continue;
    const bool is_there = pass * kRowsAtOnce < rows_left;
    RING_UNROLL
    for (int panel = 0; panel < T::kDim / T::kPanel; ++panel) {
      constexpr int kPassBytes = kRowsAtOnce * T::kRowBytes;
      lane.copy_async(to + static_cast<uint32_t>(pass * kPassBytes + panel * T::kPanelBytes),
                      from + panel * T::kPanel, is_there);
    }
  }
}

/// Addresses that a lane names to ldmatrix for the four 8x8 matrices of
///   - an A fragment: 16 rows and 16 columns of the tile,
///   - two B fragments whose columns are 16 rows of the tile,
///   - two B fragments whose columns are 16 columns of the tile, read transposed.
template <class T, class Lane>
RING_DEVICE TileAddress<T> a_address(Lane& lane, simt::SharedAddress tile, int first_row) {
  const auto own = static_cast<uint32_t>(lane.fresh(lane.lane()));
  return {tile, static_cast<uint32_t>(first_row) + own % 16, own / 16};
}
template <class T, class Lane>
RING_DEVICE TileAddress<T> b_address(Lane& lane, simt::SharedAddress tile) {
  const auto own = static_cast<uint32_t>(lane.fresh(lane.lane()));
  return {tile, own % 8 + own / 16 * 8, own / 8 % 2};
}
template <class T, class Lane>
RING_DEVICE TileAddress<T> b_trans_address(Lane& lane, simt::SharedAddress tile) {
  const auto own = static_cast<uint32_t>(lane.fresh(lane.lane()));
  return {tile, own % 16, own / 16};
}

}  // namespace ring::cuda
