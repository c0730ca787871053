// The forward block kernel for sm_80 and later: continues (u, m, l) with one block of keys.
//
// A block of threads owns `kRows` query rows of one head; every warp owns whole rows, so the
// softmax needs no other warp. It walks over the tiles of `kKeys` keys that its rows see, from the
// last one back. K of the next tile is copied while the softmax and P V of this one run, V while Q
// K^T runs.
#pragma once

#include "kernels/cuda/forward_rows.h"
#include "kernels/cuda/params.h"
#include "kernels/cuda/tile.h"
#include "kernels/cuda/tile_range.h"

namespace ring::cuda {

template <class ElementOf, int kDimQkOf, int kDimVOf, int kRowsOf, int kKeysOf, int kWarpsOf>
struct ForwardConfig {
  using Element = ElementOf;
  static constexpr int kDimQk = kDimQkOf;
  static constexpr int kDimV = kDimVOf;
  static constexpr int kRows = kRowsOf;
  static constexpr int kKeys = kKeysOf;
  static constexpr int kWarps = kWarpsOf;
  static constexpr int kThreads = kWarps * simt::kWarp;
  static constexpr int kFirstThread = 0;  ///< That owns rows.
  using QTile = Tile<kRows, kDimQk>;
  using KTile = Tile<kKeys, kDimQk>;
  using VTile = Tile<kKeys, kDimV>;
  static constexpr int kSharedBytes = QTile::kBytes + KTile::kBytes + VTile::kBytes;
};

/// One block of threads: the rows, head and batch element that its number says.
template <class Config>
class Forward {
 public:
  using Element = typename Config::Element;
  static constexpr int kM = Config::kRows / Config::kWarps / 16;  ///< Row groups of a warp.
  static constexpr int kN = Config::kKeys / 8;                    ///< Column groups of S.
  static constexpr int kNV = Config::kDimV / 8;                   ///< Column groups of u.
  using Rows = ForwardRows<Config, kM>;
  static_assert(kM >= 1 && Config::kRows == kM * 16 * Config::kWarps);

  template <class Lane>
  RING_DEVICE static void run(Lane& lane, const ForwardParams& p) {
    const TileRange tiles =
        tile_range<Config>(lane, p.spans, p.q_rows, p.kv_rows, Rows::first_row(lane));
    if (tiles.begin == tiles.end && p.starts_state == 0) return;
    const simt::SharedAddress q_tile = lane.shared_begin();
    const simt::SharedAddress k_tile = q_tile + Config::QTile::kBytes;
    const simt::SharedAddress v_tile = k_tile + Config::KTile::kBytes;
    if (tiles.begin < tiles.end) {
      copy_rows<typename Config::QTile>(lane, q_tile, p.q, lane.block_y(), Rows::first_row(lane),
                                        p.q_rows);
      copy_rows<typename Config::KTile>(lane, k_tile, p.k, Rows::kv_head(lane, p),
                                        (tiles.end - 1) * Config::kKeys, p.kv_rows);
      lane.commit_copies();
    }
    float u[kM][kNV][4];
    float m[kM][2], l[kM][2];
    Rows::load_state(lane, p, u, m, l);
    RING_NO_UNROLL
    for (int tile = tiles.end - 1; tile >= tiles.begin; --tile) {
      lane.template wait_copies<0>();
      lane.sync_block();  // K is there for all, and all are done with V of the tile before.
      copy_rows<typename Config::VTile>(lane, v_tile, p.v, Rows::kv_head(lane, p),
                                        tile * Config::kKeys, p.kv_rows);
      lane.commit_copies();
      float s[kM][kN][4];
      multiply_keys(lane, q_tile, k_tile, s);
      lane.template wait_copies<0>();
      lane.sync_block();  // V is there for all, and all are done with K.
      if (tile > tiles.begin) {
        copy_rows<typename Config::KTile>(lane, k_tile, p.k, Rows::kv_head(lane, p),
                                          (tile - 1) * Config::kKeys, p.kv_rows);
        lane.commit_copies();
      }
      if (tile < tiles.whole_begin || tile >= tiles.whole_end)
        Rows::hide_keys(lane, p, tile * Config::kKeys, s);
      weigh_all(lane, p, s, u, m, l);
      add_values(lane, v_tile, s, u);
    }
    Rows::store_state(lane, p, u, m, l);
  }

 private:
  /// Starts copying rows of one head into a tile.
  template <class T, class Lane>
  RING_DEVICE static void copy_rows(Lane& lane, simt::SharedAddress tile, const ConstTensor& tensor,
                                    int head, int first, int rows) {
    const uint16_t* const matrix =
        tensor.data + lane.block_z() * tensor.batch_stride + head * tensor.head_stride;
    copy_tile<T, Config::kThreads>(lane, tile, matrix, tensor.token_stride, first, rows);
  }

  /// S = Q K^T, raw.
  template <class Lane>
  RING_DEVICE static void multiply_keys(Lane& lane, simt::SharedAddress q_tile,
                                        simt::SharedAddress k_tile, float (&s)[kM][kN][4]) {
    RING_UNROLL
    for (int i = 0; i < kM; ++i) {
      RING_UNROLL
      for (int n = 0; n < kN; ++n) s[i][n][0] = s[i][n][1] = s[i][n][2] = s[i][n][3] = 0;
    }
    const int warp_row = static_cast<int>(static_cast<uint32_t>(lane.thread()) / simt::kWarp) * kM;
    const auto q_at = a_address<typename Config::QTile>(lane, q_tile, warp_row * 16);
    const auto k_at = b_address<typename Config::KTile>(lane, k_tile);
    RING_UNROLL
    for (int step = 0; step < Config::kDimQk / 16; ++step) {
      uint32_t a[kM][4];
      RING_UNROLL
      for (int i = 0; i < kM; ++i) lane.ldmatrix(a[i], q_at.at(i * 16, 2 * step));
      RING_UNROLL
      for (int n = 0; n < kN; n += 2) {
        uint32_t b[4];
        lane.ldmatrix(b, k_at.at(n * 8, 2 * step));
        RING_UNROLL
        for (int i = 0; i < kM; ++i) {
          lane.mma(Element{}, s[i][n], a[i], b[0], b[1]);
          lane.mma(Element{}, s[i][n + 1], a[i], b[2], b[3]);
        }
      }
    }
  }

  /// S becomes P = 2^(s - m) with the new maximum m, to which u and l are brought.
  template <class Lane>
  RING_DEVICE static void weigh_all(Lane& lane, const ForwardParams& p, float (&s)[kM][kN][4],
                                    float (&u)[kM][kNV][4], float (&m)[kM][2], float (&l)[kM][2]) {
    float top[kM][2];
    Rows::find_maxima(lane, p, s, top);
    RING_UNROLL
    for (int i = 0; i < kM; ++i) {
      RING_UNROLL
      for (int half = 0; half < 2; ++half) {
        float shift;
        const float keep =
            Rows::raise_maximum(lane, p, top[i][half], m[i][half], l[i][half], shift);
        Rows::rescale(u[i], half, keep);
        Rows::weigh(lane, p, s[i], half, shift, l[i][half]);
      }
    }
  }

  /// u += P V. The accumulators of S are laid out as the A fragments of this product.
  template <class Lane>
  RING_DEVICE static void add_values(Lane& lane, simt::SharedAddress v_tile,
                                     const float (&s)[kM][kN][4], float (&u)[kM][kNV][4]) {
    const auto v_at = b_trans_address<typename Config::VTile>(lane, v_tile);
    RING_UNROLL
    for (int step = 0; step < kN / 2; ++step) {
      uint32_t a[kM][4];
      RING_UNROLL
      for (int i = 0; i < kM; ++i) {
        RING_UNROLL
        for (int part = 0; part < 4; ++part) {
          const float(&pair)[4] = s[i][2 * step + part / 2];
          a[i][part] = lane.pack(Element{}, pair[part % 2 * 2], pair[part % 2 * 2 + 1]);
        }
      }
      RING_UNROLL
      for (int n = 0; n < kNV; n += 2) {
        uint32_t b[4];
        lane.ldmatrix_trans(b, v_at.at(step * 16, n));
        RING_UNROLL
        for (int i = 0; i < kM; ++i) {
          lane.mma(Element{}, u[i][n], a[i], b[0], b[1]);
          lane.mma(Element{}, u[i][n + 1], a[i], b[2], b[3]);
        }
      }
    }
  }
};

/// Blocks of threads of a launch: (tiles of rows, heads, batch).
template <class Config>
simt::LaunchShape forward_shape(const ForwardParams& p, int heads, int batch) {
  return {(p.q_rows + Config::kRows - 1) / Config::kRows, heads, batch, Config::kThreads,
          Config::kSharedBytes};
}

}  // namespace ring::cuda
