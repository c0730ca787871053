#include "kernels/cpu/attend.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "core/error.h"
#include "kernels/cpu/block_args.h"
#include "kernels/cpu/layout.h"

namespace ring::cpu {

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
  // A tile may be as narrow as 4 rows and a head may end within it.
  const int64_t lanes = rows + (most_tiles(shape, rows, kMaxTileRows) + 2) * kMaxTileRows;
  const int64_t block = key_block(shape.dim_qk, shape.dim_v);
  const int64_t dims = shape.dim_qk + round_up(shape.dim_v, kMaxPanel);
  const int64_t per_lane = (dims + 4) * 4;
  const int64_t keys = block * (dims + kMaxTileRows) * 4;
  const int64_t rest = (int64_t{kMaxTileRows} + 4) * kMaxHeadDim * 4 + lanes / 4 * 64 + (16 << 10);
  return lanes * per_lane + keys + rest;
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
