// TensorMap: what a bulk tensor copy knows of a tensor in global memory.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>

#include "kernels/simt/types.h"

namespace ring::simt {

/// A tensor of 16-bit elements and the box that one copy moves: `box_columns` of dim 0 and
/// `box_rows` of dim 1, at one place of dims 2 and 3. What the box has beyond the extents is zeros.
/// In shared memory rows of the box follow each other; with kSwizzle128 the three bits of a byte
/// address that number a 16-byte chunk are combined (xor) with the three above the lowest seven.
struct TensorShape {
  const void* data = nullptr;
  std::array<int64_t, 4> extents{};       ///< Elements; dim 0 is contiguous.
  std::array<int64_t, 4> stride_bytes{};  ///< From dim 1 on, multiples of 16.
  int32_t box_columns = 0, box_rows = 0;
  bool is_swizzled = true;
};

/// 128 bytes that kernels do not look into: on a GPU what the driver encodes from a TensorShape, on
/// the host the shape itself.
struct alignas(64) TensorMap {
  uint64_t words[16] = {};
};
static_assert(sizeof(TensorMap) == 128 && sizeof(TensorShape) <= sizeof(TensorMap));

inline TensorMap host_tensor_map(const TensorShape& shape) {
  TensorMap map;
  std::memcpy(map.words, &shape, sizeof shape);
  return map;
}
inline TensorShape host_tensor_shape(const TensorMap& map) {
  TensorShape shape;
  std::memcpy(&shape, map.words, sizeof shape);
  return shape;
}

/// Columns (dim 0), row, and places in dims 2 and 3 where a box begins.
struct TensorPlace {
  int column = 0, row = 0, head = 0, batch = 0;
};

/// Bytes of a row of a swizzled box, and of the pattern that the swizzle repeats.
inline constexpr int kSwizzleRowBytes = 128;
inline constexpr int kSwizzleAtomBytes = 1024;

/// Where 128-byte swizzle puts a byte that would stand at this address without it.
inline constexpr SharedAddress swizzled(SharedAddress at) { return at ^ (((at >> 7) & 7U) << 4); }

}  // namespace ring::simt
