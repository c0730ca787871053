#include "kernels/cpu/attend.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "core/error.h"
#include "kernels/cpu/block_args.h"
#include "kernels/cpu/layout.h"

namespace ring::cpu {
namespace {

// Bounds over the instruction sets: the tile records per lane (tiles are 4 rows or wider), the
// widest panel of dims in sums over queries, and the pieces that do not grow.
constexpr int64_t kTileBytes = 8;
constexpr int64_t kMaxOuter = 64;
constexpr int64_t kRestBytes = (int64_t{kMaxTileRows} + 8) * kMaxHeadDim * 4 + (16 << 10);

}  // namespace

void check_shape(const AttendShape& shape) {
  constexpr int64_t kMaxRows = std::numeric_limits<int32_t>::max();
  if (shape.q_rows < 0 || shape.kv_rows < 0 || shape.q_rows > kMaxRows ||
      shape.kv_rows > kMaxRows) {
    throw_usage(
        fmt::format("attention block of {} query rows and {} keys", shape.q_rows, shape.kv_rows),
        "each must be in [0, 2^31)");
  }
  if (shape.heads < 1 || shape.kv_heads < 1 || shape.heads % shape.kv_heads != 0) {
    throw_usage(fmt::format("{} query heads with {} KV heads", shape.heads, shape.kv_heads),
                "the number of query heads must be a multiple of the number of KV heads");
  }
  for (const int dim : {shape.dim_qk, shape.dim_v}) {
    if (dim < 1 || dim > kMaxHeadDim) {
      throw_usage(fmt::format("head dim {}", dim),
                  fmt::format("the CPU kernels take 1 to {}", kMaxHeadDim));
    }
  }
  if (!std::isfinite(shape.scale)) throw_usage("the softmax scale is not finite");
}

int key_block(int dim_qk, int dim_v) {
  const int dims = dim_qk + dim_v;
  return dims <= 256 ? 256 : 128;
}

int64_t workspace_bytes(const AttendShape& shape, const CacheSizes& caches) {
  const int64_t rows = std::min(stacked_rows(shape), rows_per_pass(shape, caches));
  const int64_t block = key_block(shape.dim_qk, shape.dim_v);
  const int64_t dims = shape.dim_qk + round_up(shape.dim_v, kMaxPanel);
  const int64_t lanes = most_lanes(shape, rows) * ((dims + 4) * 4 + kTileBytes);
  return lanes + block * (dims + kMaxTileRows) * 4 + kRestBytes;
}

int64_t backward_workspace_bytes(const AttendShape& shape) {
  const int64_t rows = std::min(stacked_rows(shape), kUnitRows);
  const int64_t dims = round_up(shape.dim_qk, kMaxOuter) + round_up(shape.dim_v, kMaxOuter);
  const int64_t lanes = most_lanes(shape, rows + kMaxTileRows) * (5 * dims * 4 + 16 + kTileBytes);
  return lanes + kUnitKeys * (3 * dims + 4 * kMaxTileRows) * 4 + kRestBytes;
}

void attend(const AttendShape& shape, ConstView q, ConstView k, ConstView v, const KeySpan* spans,
            AttendState state, Workspace& workspace) {
  check_shape(shape);
  if (shape.q_rows == 0 || shape.kv_rows == 0) return;
  const ForwardArgs args{shape, q, k, v, spans, state};
  for (int kv_head = 0; kv_head < shape.kv_heads; ++kv_head) {
    attend_rows(args, {kv_head, 0, stacked_rows(shape)}, workspace);
  }
}

}  // namespace ring::cpu
