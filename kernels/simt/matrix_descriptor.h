// MatrixDescriptor: the 64 bits by which wgmma names a matrix in shared memory.
#pragma once

#include <cstdint>

#include "kernels/simt/macros.h"
#include "kernels/simt/types.h"

namespace ring::simt {

/// Bits (PTX ISA, matrix descriptor): 0-13 start address, 16-29 leading and 32-45 stride dimension
/// byte offset, all three in units of 16 bytes; 49-51 base offset; 62-63 swizzle mode, 1 for 128
/// bytes. With that swizzle and 16-bit elements,
///   rows contiguous in k:      row r, element k stands at start + r % 8 * 128 + r / 8 * stride
///                              + 2 k, for the 16 k of an instruction; `leading` is not used;
///   columns contiguous:        k, column c stands at start + k % 8 * 128 + k / 8 * stride
///                              + c % 64 * 2 + c / 64 * leading;
/// the address is then swizzled.
RING_BOTH constexpr uint64_t matrix_descriptor(SharedAddress start, int leading_bytes,
                                               int stride_bytes) {
  return (static_cast<uint64_t>(start & 0x3ffffU) >> 4) |
         (static_cast<uint64_t>(leading_bytes) >> 4 << 16) |
         (static_cast<uint64_t>(stride_bytes) >> 4 << 32) | (uint64_t{1} << 62);
}

struct MatrixDescriptor {
  SharedAddress start = 0;
  uint32_t leading_bytes = 0, stride_bytes = 0;
  int base_offset = 0, swizzle_mode = 0;
};

inline MatrixDescriptor decode_descriptor(uint64_t bits) {
  const auto field = [bits](int first, uint64_t mask) {
    return static_cast<uint32_t>(bits >> first & mask);
  };
  return {field(0, 0x3fff) << 4, field(16, 0x3fff) << 4, field(32, 0x3fff) << 4,
          static_cast<int>(field(49, 7)), static_cast<int>(field(62, 3))};
}

}  // namespace ring::simt
