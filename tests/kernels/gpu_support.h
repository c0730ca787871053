// Runs the GPU kernels on the host executor over the random problems of the CPU kernels' tests.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kernels/cuda/params.h"
#include "kernels/simt/block.h"
#include "tests/kernels/cpu_support.h"
#include "tests/kernels/gpu_forward_inl.h"

namespace ring::test {

/// An attention state as the GPU kernels keep it.
struct GpuState {
  explicit GpuState(const cpu::AttendShape& shape);
  cuda::StateView view(const cpu::AttendShape& shape);
  /// The bits of all values are the same, NaN or not.
  bool operator==(const GpuState& other) const;

  std::vector<float> u, m, l;
};

/// A token-major case whose rows begin at multiples of 16 bytes.
Case gpu_case(const cpu::AttendShape& shape, uint64_t seed, double deviation = 1.0);

/// A launch over all heads that may touch nothing but its tensors.
ForwardLaunch forward_launch(const Case& c, GpuState& state, bool starts_state, uint64_t seed);

/// The state, divided, against the oracle and the bounds of docs/numerics.md.
std::optional<std::string> first_gpu_error(const Case& c, const GpuState& state);

/// Tiles of a launch of a forward kernel: (tiles of rows) x (tiles of keys between the first and
/// the last key that any of the rows sees), worked out from the spans.
template <class Config>
int64_t forward_tile_count(const Case& c) {
  int64_t tiles = 0;
  for (int64_t first = 0; first < c.shape.q_rows; first += Config::kRows) {
    int64_t low = c.shape.kv_rows, high = 0;
    for (int64_t row = first; row < std::min(first + Config::kRows, c.shape.q_rows); ++row) {
      const cpu::KeySpan span = c.spans.empty()
                                    ? cpu::KeySpan{0, static_cast<int32_t>(c.shape.kv_rows)}
                                    : c.spans[static_cast<size_t>(row)];
      if (span.begin >= span.end) continue;
      low = std::min<int64_t>(low, span.begin);
      high = std::max<int64_t>(high, span.end);
    }
    if (low < high) tiles += (high - 1) / Config::kKeys - low / Config::kKeys + 1;
  }
  return tiles * c.shape.heads;
}

/// mma.m16n8k16 instructions of the launch, or wgmma, 64 rows and 16 deep, of the kernel that has
/// them.
template <class Config>
int64_t forward_mma_count(const Case& c) {
  if constexpr (HasStages<Config>) {
    return forward_tile_count<Config>(c) * (Config::kRows / 64) * (Config::kDimQk + Config::kKeys) /
           16;
  } else {
    const int64_t per_tile =
        int64_t{Config::kRows} * Config::kKeys * (Config::kDimQk + Config::kDimV) / (16 * 8 * 16);
    return forward_tile_count<Config>(c) * per_tile;
  }
}

}  // namespace ring::test
