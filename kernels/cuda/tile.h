// Tile: rows of 16-bit elements in shared memory, swizzled so that no access meets a bank conflict.
#pragma once

#include <cstdint>

#include "kernels/simt/macros.h"
#include "kernels/simt/types.h"

namespace ring::cuda {

inline constexpr int kChunk = 8;  ///< Elements of 16 bytes.

/// (row, dim) cut into panels of 64 columns, or 32 where 64 does not divide the dim, one after the
/// other. Within a panel the 16-byte chunk c of a row stands at place c ^ f(row): eight rows of
/// one chunk, which ldmatrix reads at once, and eight chunks of a row, which a copy writes at
/// once, then lie in different banks.
template <int kRowsOf, int kDimOf>
struct Tile {
  static constexpr int kRows = kRowsOf;
  static constexpr int kDim = kDimOf;
  static constexpr int kPanel = kDim % 64 == 0 ? 64 : 32;
  static constexpr int kRowChunks = kPanel / kChunk;
  static constexpr int kPanelBytes = kRows * kPanel * 2;
  static constexpr int kBytes = kRows * kDim * 2;
  static_assert(kDim % kPanel == 0 && kRows % 8 == 0);

  /// Byte offset of a chunk.
  RING_BOTH static constexpr uint32_t at(int row, int chunk) {
    const int swizzle = kPanel == 64 ? row % 8 : row / 2 % 4;
    return static_cast<uint32_t>(chunk / kRowChunks * kPanelBytes + row * kPanel * 2 +
                                 (chunk % kRowChunks ^ swizzle) * simt::kCopyBytes);
  }
};

/// Starts copying rows [first, first + kRows) of a (token, dim) matrix into a tile; rows from
/// `rows` on become zeros. All `kThreads` threads of the block take part.
template <class T, int kThreads, class Lane>
RING_DEVICE void copy_tile(Lane& lane, simt::SharedAddress tile, const uint16_t* matrix,
                           int64_t token_stride, int first, int rows) {
  constexpr int kRowsAtOnce = kThreads / T::kRowChunks;
  constexpr int kRowPasses = (T::kRows + kRowsAtOnce - 1) / kRowsAtOnce;
  const int thread = lane.fresh(lane.thread());
  const int chunk = thread % T::kRowChunks;
  const int row = thread / T::kRowChunks;
  const uint16_t* const from = matrix + (first + row) * token_stride + chunk * kChunk;
  RING_UNROLL
  for (int pass = 0; pass < kRowPasses; ++pass) {
    const int tile_row = row + pass * kRowsAtOnce;
    // Fewer rows than the threads could copy at once: whole warps stay out.
    if (T::kRows % kRowsAtOnce != 0 && tile_row >= T::kRows) continue;
    const bool is_there = first + tile_row < rows;
    const uint16_t* const row_from = from + pass * kRowsAtOnce * token_stride;
    RING_UNROLL
    for (int panel = 0; panel < T::kDim / T::kPanel; ++panel) {
      lane.copy_async(tile + T::at(tile_row, panel * T::kRowChunks + chunk),
                      row_from + panel * T::kPanel, is_there);
    }
  }
}

/// Row and chunk that a lane names to ldmatrix for the four 8x8 matrices of
///   - an A fragment: 16 rows and 16 columns of the tile,
///   - two B fragments whose columns are 16 rows of the tile,
///   - two B fragments whose columns are 16 columns of the tile, read transposed.
RING_BOTH int a_row(int lane) { return lane % 16; }
RING_BOTH int a_chunk(int lane) { return lane / 16; }
RING_BOTH int b_row(int lane) { return lane % 8 + lane / 16 * 8; }
RING_BOTH int b_chunk(int lane) { return lane / 8 % 2; }
RING_BOTH int b_trans_row(int lane) { return lane % 16; }
RING_BOTH int b_trans_chunk(int lane) { return lane / 16; }

}  // namespace ring::cuda
