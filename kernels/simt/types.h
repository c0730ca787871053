// What kernels pass to the primitives: element types, vectors, addresses in shared memory.
#pragma once

#include <cstdint>

namespace ring::simt {

/// Element types of Q, K, V and the output; two of them are packed into 32 bits, the first one low.
struct Bf16 {};
struct F16 {};

struct alignas(8) Float2 {
  float x = 0, y = 0;
};
struct alignas(16) Float4 {
  float x = 0, y = 0, z = 0, w = 0;
};
struct alignas(8) Words2 {
  uint32_t x = 0, y = 0;
};
struct alignas(16) Words4 {
  uint32_t x = 0, y = 0, z = 0, w = 0;
};

/// Byte address within the shared memory of a block.
using SharedAddress = uint32_t;

inline constexpr int kWarp = 32;
inline constexpr int kCopyBytes = 16;  ///< Of one asynchronous copy, and of one row of ldmatrix.

/// The grid and the block of a launch.
struct LaunchShape {
  int grid_x = 1, grid_y = 1, grid_z = 1;
  int threads = kWarp;
  int shared_bytes = 0;
};

}  // namespace ring::simt
