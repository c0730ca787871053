// Steps that the backward kernels share: which tiles, which rows, products of tiles.
#pragma once

#include <cmath>

#include "kernels/cuda/params.h"
#include "kernels/cuda/tile.h"
#include "kernels/cuda/tile_range.h"

namespace ring::cuda {

/// Row of a warp's 16 that a lane has first (the other is 8 further), and the column of its pair.
template <class Lane>
RING_DEVICE int warp_row(const Lane& lane) {
  const auto thread = static_cast<uint32_t>(lane.fresh(lane.thread()));
  return static_cast<int>(thread / simt::kWarp * 16 + thread % simt::kWarp / 4);
}
template <class Lane>
RING_DEVICE int quad_column(const Lane& lane) {
  return static_cast<int>(static_cast<uint32_t>(lane.fresh(lane.thread())) % 4) * 2;
}

/// Q and dO of a query head, K and V of its KV head.
struct HeadMatrices {
  RING_DEVICE HeadMatrices(const BackwardParams& p, int batch, int head)
      : q(p.q.data + batch * p.q.batch_stride + head * p.q.head_stride),
        d_out(p.d_out.data + batch * p.d_out.batch_stride + head * p.d_out.head_stride),
        k(p.k.data + batch * p.k.batch_stride + head / p.group * p.k.head_stride),
        v(p.v.data + batch * p.v.batch_stride + head / p.group * p.v.head_stride) {}
  const uint16_t *q, *d_out, *k, *v;
};

template <class T, class Config, class Lane>
RING_DEVICE void copy_rows(Lane& lane, simt::SharedAddress tile, const uint16_t* matrix,
                           const ConstTensor& tensor, int first, int rows) {
  copy_tile<T, Config::kThreads>(lane, tile, matrix, tensor.token_stride, first, rows);
}

/// lse in base 2 and delta of a row. A row that is not there or sees nothing has an infinite shift:
/// all its weights are 0.
struct RowScalars {
  float shift = INFINITY;
  float delta = 0;
};
template <class Lane>
RING_DEVICE RowScalars row_scalars(Lane& lane, const BackwardParams& p, int head, int row) {
  RowScalars scalars;
  if (row >= p.q_rows) return scalars;
  const int64_t at =
      lane.block_z() * p.row_batch_stride + head * p.row_head_stride + row * p.row_stride;
  const float lse = lane.load_global(p.lse + at);
  if (lse == -INFINITY) return scalars;
  scalars.shift = lse * kLog2e;
  scalars.delta = lane.load_global(p.delta + at);
  return scalars;
}

/// Keys that a row sees; none for rows beyond the last.
template <class Lane>
RING_DEVICE KeyRange span_of(Lane& lane, const BackwardParams& p, int row) {
  if (row >= p.q_rows) return {0, 0};
  if (p.spans == nullptr) return {0, p.kv_rows};
  return lane.load_global(p.spans + row);
}

/// The tiles of rows that see any of a block's keys, for one query head of the group after another.
template <class Config>
struct RowTiles {
  RING_DEVICE RowTiles(const BackwardParams& params, int key) : p(params), first_key(key) {}

  RING_DEVICE void advance() { ++tile; }
  /// Goes on to the next such tile, the present one included; false after the last.
  template <class Lane>
  RING_DEVICE bool find(Lane& lane) {
    const int tiles = (p.q_rows + Config::kRows - 1) / Config::kRows;
    RING_NO_UNROLL
    for (; head < p.group; ++head, tile = 0) {
      RING_NO_UNROLL
      for (; tile < tiles; ++tile) {
        if (look(lane)) return true;
      }
    }
    return false;
  }

  const BackwardParams& p;
  int first_key;
  int head = 0;          ///< Within the group.
  int tile = 0;          ///< Of rows.
  bool is_edge = false;  ///< Some row does not see some key of the block.

 private:
  template <class Lane>
  RING_DEVICE bool look(Lane& lane) {
    const int last_key = first_key + Config::kKeys;
    bool sees_any = false, misses_some = last_key > p.kv_rows;
    RING_NO_UNROLL
    for (int i = lane.lane(); i < Config::kRows; i += simt::kWarp) {
      const KeyRange span = span_of(lane, p, tile * Config::kRows + i);
      sees_any =
          sees_any || (span.begin < last_key && span.end > first_key && span.begin < span.end);
      misses_some = misses_some || span.begin > first_key || span.end < last_key;
    }
    is_edge = lane.any(misses_some);
    return lane.any(sees_any);
  }
};

/// product (16 rows of the warp, kB rows of B) = A B^T of two tiles of equal dims.
template <class A, class B, class Element, class Lane, int kN>
RING_DEVICE void multiply_rows(Lane& lane, Element element, simt::SharedAddress a_tile,
                               simt::SharedAddress b_tile, float (&product)[kN][4]) {
  static_assert(A::kDim == B::kDim && B::kRows == kN * 8);
  const int own_row = static_cast<int>(static_cast<uint32_t>(lane.thread()) / simt::kWarp) * 16;
  const auto a_at = a_address<A>(lane, a_tile, own_row);
  const auto b_at = b_address<B>(lane, b_tile);
  RING_UNROLL
  for (int n = 0; n < kN; ++n) product[n][0] = product[n][1] = product[n][2] = product[n][3] = 0;
  RING_UNROLL
  for (int step = 0; step < A::kDim / 16; ++step) {
    uint32_t a[4];
    lane.ldmatrix(a, a_at.at(0, 2 * step));
    RING_UNROLL
    for (int n = 0; n < kN; n += 2) {
      uint32_t b[4];
      lane.ldmatrix(b, b_at.at(n * 8, 2 * step));
      lane.mma(element, product[n], a, b[0], b[1]);
      lane.mma(element, product[n + 1], a, b[2], b[3]);
    }
  }
}

/// sum (16 rows of the warp, 8 kND columns) += weights (16, rows of the tile) times columns
/// [first_dim, first_dim + 8 kND) of the tile.
template <class B, int kN, int kND, class Element, class Lane>
RING_DEVICE void add_columns(Lane& lane, Element element, const float (&weights)[kN][4],
                             simt::SharedAddress tile, int first_dim, float (&sum)[kND][4]) {
  // A part begins with a whole number of panels, or is the only one.
  const auto panels = static_cast<uint32_t>(first_dim / B::kPanel * B::kPanelBytes);
  const auto at = b_trans_address<B>(lane, tile + panels);
  RING_UNROLL
  for (int step = 0; step < kN / 2; ++step) {
    uint32_t a[4];
    RING_UNROLL
    for (int part = 0; part < 4; ++part) {
      const float(&pair)[4] = weights[2 * step + part / 2];
      a[part] = lane.pack(element, pair[part % 2 * 2], pair[part % 2 * 2 + 1]);
    }
    RING_UNROLL
    for (int n = 0; n < kND; n += 2) {
      uint32_t b[4];
      lane.ldmatrix_trans(b, at.at(step * 16, n));
      lane.mma(element, sum[n], a, b[0], b[1]);
      lane.mma(element, sum[n + 1], a, b[2], b[3]);
    }
  }
}

/// Adds factor * sum to the rows of a fp32 matrix that belong to the warp, as far as there are
/// rows; `stride` elements from one to the next.
template <int kND, class Lane>
RING_DEVICE void add_to_rows(Lane& lane, float* matrix, int64_t stride, int rows, float factor,
                             const float (&sum)[kND][4]) {
  RING_UNROLL
  for (int half = 0; half < 2; ++half) {
    const int row = warp_row(lane) + half * 8;
    if (row >= rows) continue;
    float* const to = matrix + row * stride + quad_column(lane);
    RING_UNROLL
    for (int n = 0; n < kND; ++n) {
      auto* const pair = reinterpret_cast<simt::Float2*>(to + n * 8);
      simt::Float2 value = lane.load_global(pair);
      value.x += factor * sum[n][2 * half];
      value.y += factor * sum[n][2 * half + 1];
      lane.store_global(pair, value);
    }
  }
}

}  // namespace ring::cuda
