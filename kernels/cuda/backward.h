// The backward block kernels for sm_80 and later: dQ by rows, dK and dV by keys.
//
// Every sum is owned by one block of threads, so nothing is added atomically and the result does
// not depend on the order in which blocks run. The price is that both kernels work out P and dS: 7
// products of matrices instead of 5. P and dS are rounded to the model dtype, sums are fp32.
#pragma once

#include <cmath>

#include "kernels/cuda/backward_parts.h"
#include "kernels/cuda/params.h"
#include "kernels/cuda/tile.h"

namespace ring::cuda {

template <class ElementOf, int kDimQkOf, int kDimVOf, int kRowsOf, int kKeysOf, int kWarpsOf,
          int kPartsOf = 1>
struct BackwardConfig {
  using Element = ElementOf;
  static constexpr int kDimQk = kDimQkOf;
  static constexpr int kDimV = kDimVOf;
  static constexpr int kRows = kRowsOf;
  static constexpr int kKeys = kKeysOf;
  static constexpr int kWarps = kWarpsOf;
  /// Blocks that share the dims of a sum that the registers of one do not hold.
  static constexpr int kParts = kPartsOf;
  static constexpr int kThreads = kWarps * simt::kWarp;
  using QTile = Tile<kRows, kDimQk>;
  using OTile = Tile<kRows, kDimV>;
  using KTile = Tile<kKeys, kDimQk>;
  using VTile = Tile<kKeys, kDimV>;
  static constexpr int kTileBytes = QTile::kBytes + OTile::kBytes + KTile::kBytes + VTile::kBytes;
};

/// Shared memory of a block: the four tiles, then lse and delta of the rows.
template <class Config>
struct BackwardShared {
  template <class Lane>
  RING_DEVICE explicit BackwardShared(const Lane& lane)
      : q(lane.shared_begin()),
        d_out(q + Config::QTile::kBytes),
        k(d_out + Config::OTile::kBytes),
        v(k + Config::KTile::kBytes),
        lse(v + Config::VTile::kBytes),
        delta(lse + Config::kRows * 4) {}
  static constexpr int kBytes = Config::kTileBytes + 2 * Config::kRows * 4;
  simt::SharedAddress q, d_out, k, v, lse, delta;
};

/// dQ: a block owns kRows rows of one head, every warp 16 of them, and walks over the keys.
template <class Config>
class BackwardRows {
 public:
  using Element = typename Config::Element;
  static constexpr int kN = Config::kKeys / 8;
  static constexpr int kDims = Config::kDimQk / Config::kParts;
  static constexpr int kND = kDims / 8;
  static_assert(Config::kRows == 16 * Config::kWarps && kDims % 16 == 0);

  template <class Lane>
  RING_DEVICE static void run(Lane& lane, const BackwardParams& p) {
    const int tile_number = lane.block_x() / Config::kParts;
    const int first_row = tile_number * Config::kRows;
    const int first_dim = lane.block_x() % Config::kParts * kDims;
    const int head = lane.block_y(), batch = lane.block_z();
    const TileRange tiles = tile_range<Config>(lane, p.spans, p.q_rows, p.kv_rows, first_row);
    if (tiles.begin == tiles.end) return;
    const BackwardShared<Config> at(lane);
    const HeadMatrices own(p, batch, head);
    copy_rows<typename Config::QTile, Config>(lane, at.q, own.q, p.q, first_row, p.q_rows);
    copy_rows<typename Config::OTile, Config>(lane, at.d_out, own.d_out, p.d_out, first_row,
                                              p.q_rows);
    copy_keys(lane, at.k, at.v, own, p, tiles.begin);
    lane.commit_copies();
    float shift[2], delta[2];
    load_rows(lane, p, first_row, shift, delta);
    float dq[kND][4] = {};
    RING_NO_UNROLL
    for (int tile = tiles.begin; tile < tiles.end; ++tile) {
      lane.template wait_copies<0>();
      lane.sync_block();  // K and V are there for all.
      float s[kN][4], dp[kN][4];
      multiply_rows<typename Config::QTile, typename Config::KTile>(lane, Element{}, at.q, at.k, s);
      multiply_rows<typename Config::OTile, typename Config::VTile>(lane, Element{}, at.d_out, at.v,
                                                                    dp);
      const bool is_edge = tile < tiles.whole_begin || tile >= tiles.whole_end;
      if (is_edge) hide(lane, p, first_row, tile * Config::kKeys, s);
      slopes(lane, p, shift, delta, s, dp);
      add_columns<typename Config::KTile, kN, kND>(lane, Element{}, dp, at.k, first_dim, dq);
      if (tile + 1 < tiles.end) {
        lane.sync_block();  // All are done with K and V.
        copy_keys(lane, at.k, at.v, own, p, tile + 1);
        lane.commit_copies();
      }
    }
    const int64_t row =
        batch * p.row_batch_stride + head * p.row_head_stride + first_row * p.row_stride;
    add_to_rows<kND>(lane, p.dq + row * Config::kDimQk + first_dim, p.row_stride * Config::kDimQk,
                     p.q_rows - first_row, p.scale, dq);
  }

 private:
  template <class Lane>
  RING_DEVICE static void copy_keys(Lane& lane, simt::SharedAddress k, simt::SharedAddress v,
                                    const HeadMatrices& own, const BackwardParams& p, int tile) {
    copy_rows<typename Config::KTile, Config>(lane, k, own.k, p.k, tile * Config::kKeys, p.kv_rows);
    copy_rows<typename Config::VTile, Config>(lane, v, own.v, p.v, tile * Config::kKeys, p.kv_rows);
  }

  template <class Lane>
  RING_DEVICE static void load_rows(Lane& lane, const BackwardParams& p, int first_row,
                                    float (&shift)[2], float (&delta)[2]) {
    RING_UNROLL
    for (int half = 0; half < 2; ++half) {
      const RowScalars row =
          row_scalars(lane, p, lane.block_y(), first_row + warp_row(lane) + half * 8);
      shift[half] = row.shift;
      delta[half] = row.delta;
    }
  }

  template <class Lane>
  RING_DEVICE static void hide(Lane& lane, const BackwardParams& p, int first_row, int first_key,
                               float (&s)[kN][4]) {
    const int key = first_key + quad_column(lane);
    RING_UNROLL
    for (int half = 0; half < 2; ++half) {
      const KeyRange span = span_of(lane, p, first_row + warp_row(lane) + half * 8);
      RING_UNROLL
      for (int n = 0; n < kN; ++n) {
        RING_UNROLL
        for (int e = 0; e < 2; ++e) {
          const int at = key + n * 8 + e;
          if (at < span.begin || at >= span.end) s[n][2 * half + e] = -INFINITY;
        }
      }
    }
  }

  /// dp becomes dS.
  template <class Lane>
  RING_DEVICE static void slopes(Lane& lane, const BackwardParams& p, const float (&shift)[2],
                                 const float (&delta)[2], const float (&s)[kN][4],
                                 float (&dp)[kN][4]) {
    const float factor = p.scale * kLog2e;
    RING_UNROLL
    for (int n = 0; n < kN; ++n) {
      RING_UNROLL
      for (int e = 0; e < 4; ++e) {
        const float weight = lane.exp2(s[n][e] * factor - shift[e / 2]);
        dp[n][e] = weight * (dp[n][e] - delta[e / 2]);
      }
    }
  }
};

/// dK and dV: a block owns kKeys keys of one KV head, every warp 16 of them, and walks over the
/// rows of all its query heads.
template <class Config>
class BackwardKeys {
 public:
  using Element = typename Config::Element;
  static constexpr int kN = Config::kRows / 8;
  static constexpr int kDimsK = Config::kDimQk / Config::kParts;
  static constexpr int kDimsV = Config::kDimV / Config::kParts;
  static_assert(Config::kKeys == 16 * Config::kWarps && kDimsK % 16 == 0 && kDimsV % 16 == 0);

  template <class Lane>
  RING_DEVICE static void run(Lane& lane, const BackwardParams& p) {
    const int part = lane.block_x() % Config::kParts;
    const int first_key = lane.block_x() / Config::kParts * Config::kKeys;
    const int kv_head = lane.block_y(), batch = lane.block_z();
    RowTiles<Config> rows(p, first_key);
    if (!rows.find(lane)) return;
    const BackwardShared<Config> at(lane);
    {
      const HeadMatrices own(p, batch, kv_head * p.group);
      copy_rows<typename Config::KTile, Config>(lane, at.k, own.k, p.k, first_key, p.kv_rows);
      copy_rows<typename Config::VTile, Config>(lane, at.v, own.v, p.v, first_key, p.kv_rows);
    }
    fetch(lane, at, p, kv_head * p.group + rows.head, rows.tile * Config::kRows);
    float dk[kDimsK / 8][4] = {}, dv[kDimsV / 8][4] = {};
    for (bool is_there = true; is_there;) {
      const int first_row = rows.tile * Config::kRows;
      const bool is_edge = rows.is_edge;
      lane.template wait_copies<0>();
      lane.sync_block();  // Q, dO, lse and delta are there for all.
      float s[kN][4], dp[kN][4];
      multiply_rows<typename Config::KTile, typename Config::QTile>(lane, Element{}, at.k, at.q, s);
      multiply_rows<typename Config::VTile, typename Config::OTile>(lane, Element{}, at.v, at.d_out,
                                                                    dp);
      if (is_edge) hide(lane, p, first_row, first_key, s);
      weigh(lane, p, at, s, dp);
      add_columns<typename Config::OTile, kN, kDimsV / 8>(lane, Element{}, s, at.d_out,
                                                          part * kDimsV, dv);
      add_columns<typename Config::QTile, kN, kDimsK / 8>(lane, Element{}, dp, at.q, part * kDimsK,
                                                          dk);
      rows.advance();
      is_there = rows.find(lane);
      if (is_there) {
        lane.sync_block();  // All are done with the rows.
        fetch(lane, at, p, kv_head * p.group + rows.head, rows.tile * Config::kRows);
      }
    }
    const int64_t key =
        batch * p.key_batch_stride + kv_head * p.key_head_stride + first_key * p.key_stride;
    const int keys_left = p.kv_rows - first_key;
    add_to_rows<kDimsK / 8>(lane, p.dk + key * Config::kDimQk + part * kDimsK,
                            p.key_stride * Config::kDimQk, keys_left, p.scale, dk);
    add_to_rows<kDimsV / 8>(lane, p.dv + key * Config::kDimV + part * kDimsV,
                            p.key_stride * Config::kDimV, keys_left, 1.0F, dv);
  }

 private:
  template <class Lane>
  RING_DEVICE static void fetch(Lane& lane, const BackwardShared<Config>& at,
                                const BackwardParams& p, int head, int first_row) {
    const HeadMatrices own(p, lane.block_z(), head);
    copy_rows<typename Config::QTile, Config>(lane, at.q, own.q, p.q, first_row, p.q_rows);
    copy_rows<typename Config::OTile, Config>(lane, at.d_out, own.d_out, p.d_out, first_row,
                                              p.q_rows);
    lane.commit_copies();
    static_assert(Config::kRows % simt::kWarp == 0 || Config::kRows < Config::kThreads);
    const int row = lane.thread();
    const bool has_row = row < Config::kRows;
    RowScalars scalars;
    if (has_row) scalars = row_scalars(lane, p, head, first_row + row);
    const auto offset = static_cast<simt::SharedAddress>(has_row ? row * 4 : 0);
    lane.store_shared(at.lse + offset, scalars.shift, has_row);
    lane.store_shared(at.delta + offset, scalars.delta, has_row);
  }

  template <class Lane>
  RING_DEVICE static void hide(Lane& lane, const BackwardParams& p, int first_row, int first_key,
                               float (&s)[kN][4]) {
    const int key = first_key + warp_row(lane);
    RING_UNROLL
    for (int n = 0; n < kN; ++n) {
      RING_UNROLL
      for (int e = 0; e < 2; ++e) {
        const KeyRange span = span_of(lane, p, first_row + n * 8 + quad_column(lane) + e);
        if (key < span.begin || key >= span.end) s[n][e] = -INFINITY;
        if (key + 8 < span.begin || key + 8 >= span.end) s[n][2 + e] = -INFINITY;
      }
    }
  }

  /// s becomes P, dp becomes dS; columns are rows of the problem.
  template <class Lane>
  RING_DEVICE static void weigh(Lane& lane, const BackwardParams& p,
                                const BackwardShared<Config>& at, float (&s)[kN][4],
                                float (&dp)[kN][4]) {
    const float factor = p.scale * kLog2e;
    RING_UNROLL
    for (int n = 0; n < kN; ++n) {
      const auto offset = static_cast<simt::SharedAddress>((n * 8 + quad_column(lane)) * 4);
      const auto shift = lane.template load_shared<simt::Float2>(at.lse + offset);
      const auto delta = lane.template load_shared<simt::Float2>(at.delta + offset);
      RING_UNROLL
      for (int e = 0; e < 4; ++e) {
        s[n][e] = lane.exp2(s[n][e] * factor - (e % 2 == 0 ? shift.x : shift.y));
        dp[n][e] = s[n][e] * (dp[n][e] - (e % 2 == 0 ? delta.x : delta.y));
      }
    }
  }
};

/// Blocks of threads: (parts of tiles of rows, heads, batch), (parts of tiles of keys, KV heads,
/// batch).
template <class Config>
simt::LaunchShape backward_rows_shape(const BackwardParams& p, int heads, int batch) {
  return {(p.q_rows + Config::kRows - 1) / Config::kRows * Config::kParts, heads, batch,
          Config::kThreads, BackwardShared<Config>::kBytes};
}
template <class Config>
simt::LaunchShape backward_keys_shape(const BackwardParams& p, int kv_heads, int batch) {
  return {(p.kv_rows + Config::kKeys - 1) / Config::kKeys * Config::kParts, kv_heads, batch,
          Config::kThreads, BackwardShared<Config>::kBytes};
}

}  // namespace ring::cuda
