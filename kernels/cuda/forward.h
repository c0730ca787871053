// The forward block kernel for sm_80 and later: continues (u, m, l) with one block of keys.
//
// A block of threads owns `kRows` query rows of one head; every warp owns whole rows, so the
// softmax needs no other warp. It walks over the tiles of `kKeys` keys that its rows see, from the
// last one back. K of the next tile is copied while the softmax and P V of this one run, V while Q
// K^T runs.
#pragma once

#include <cmath>

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
  static_assert(kM >= 1 && Config::kRows == kM * 16 * Config::kWarps);

  template <class Lane>
  RING_DEVICE static void run(Lane& lane, const ForwardParams& p) {
    const TileRange tiles = tile_range<Config>(lane, p.spans, p.q_rows, p.kv_rows, first_row(lane));
    if (tiles.begin == tiles.end && p.starts_state == 0) return;
    const simt::SharedAddress q_tile = lane.shared_begin();
    const simt::SharedAddress k_tile = q_tile + Config::QTile::kBytes;
    const simt::SharedAddress v_tile = k_tile + Config::KTile::kBytes;
    if (tiles.begin < tiles.end) {
      copy_rows<typename Config::QTile>(lane, q_tile, p.q, lane.block_y(), first_row(lane),
                                        p.q_rows);
      copy_rows<typename Config::KTile>(lane, k_tile, p.k, kv_head(lane, p),
                                        (tiles.end - 1) * Config::kKeys, p.kv_rows);
      lane.commit_copies();
    }
    float u[kM][kNV][4];
    float m[kM][2], l[kM][2];
    load_state(lane, p, u, m, l);
    RING_NO_UNROLL
    for (int tile = tiles.end - 1; tile >= tiles.begin; --tile) {
      lane.template wait_copies<0>();
      lane.sync_block();  // K is there for all, and all are done with V of the tile before.
      copy_rows<typename Config::VTile>(lane, v_tile, p.v, kv_head(lane, p), tile * Config::kKeys,
                                        p.kv_rows);
      lane.commit_copies();
      float s[kM][kN][4];
      multiply_keys(lane, q_tile, k_tile, s);
      lane.template wait_copies<0>();
      lane.sync_block();  // V is there for all, and all are done with K.
      if (tile > tiles.begin) {
        copy_rows<typename Config::KTile>(lane, k_tile, p.k, kv_head(lane, p),
                                          (tile - 1) * Config::kKeys, p.kv_rows);
        lane.commit_copies();
      }
      if (tile < tiles.whole_begin || tile >= tiles.whole_end)
        hide_keys(lane, p, tile * Config::kKeys, s);
      weigh(lane, p, s, u, m, l);
      add_values(lane, v_tile, s, u);
    }
    store_state(lane, p, u, m, l);
  }

 private:
  // Numbers that take a register each are worked out anew where they are needed.

  /// The last rows see most under a causal mask: they start first.
  template <class Lane>
  RING_DEVICE static int first_row(const Lane& lane) {
    return lane.fresh(lane.grid_x() - 1 - lane.block_x()) * Config::kRows;
  }

  template <class Lane>
  RING_DEVICE static int kv_head(const Lane& lane, const ForwardParams& p) {
    return static_cast<int>(static_cast<uint32_t>(lane.fresh(lane.block_y())) * p.group_inverse >>
                            16);
  }

  /// Starts copying rows of one head into a tile.
  template <class T, class Lane>
  RING_DEVICE static void copy_rows(Lane& lane, simt::SharedAddress tile, const ConstTensor& tensor,
                                    int head, int first, int rows) {
    const uint16_t* const matrix =
        tensor.data + lane.block_z() * tensor.batch_stride + head * tensor.head_stride;
    copy_tile<T, Config::kThreads>(lane, tile, matrix, tensor.token_stride, first, rows);
  }

  /// First row of the two (16 apart by m, 8 apart by half) of a lane, within the block of threads.
  template <class Lane>
  RING_DEVICE static int lane_row(const Lane& lane) {
    const auto thread = static_cast<uint32_t>(lane.fresh(lane.thread()));
    return static_cast<int>(thread / simt::kWarp * kM * 16 + thread % simt::kWarp / 4);
  }

  template <class Lane>
  RING_DEVICE static int64_t state_row(const Lane& lane, const ForwardParams& p) {
    return lane.block_z() * p.state.batch_stride + lane.block_y() * p.state.head_stride;
  }

  template <class Lane>
  RING_DEVICE static void load_state(Lane& lane, const ForwardParams& p, float (&u)[kM][kNV][4],
                                     float (&m)[kM][2], float (&l)[kM][2]) {
    const int row = first_row(lane) + lane_row(lane);
    const int64_t at = state_row(lane, p) + row;
    const float* const from = p.state.u + at * Config::kDimV +
                              static_cast<int>(static_cast<uint32_t>(lane.lane()) % 4) * 2;
    RING_UNROLL
    for (int i = 0; i < kM; ++i) {
      RING_UNROLL
      for (int half = 0; half < 2; ++half) {
        const int offset = i * 16 + half * 8;
        const bool is_read = p.starts_state == 0 && row + offset < p.q_rows;
        m[i][half] = -INFINITY;
        l[i][half] = 0;
        RING_UNROLL
        for (int n = 0; n < kNV; ++n) {
          simt::Float2 pair{0, 0};
          if (is_read) {
            pair = lane.load_global(
                reinterpret_cast<const simt::Float2*>(from + offset * Config::kDimV + n * 8));
          }
          u[i][n][2 * half] = pair.x;
          u[i][n][2 * half + 1] = pair.y;
        }
        if (!is_read) continue;
        m[i][half] = lane.load_global(p.state.m + at + offset);
        // The four lanes of a row add up their shares at the end; one of them brings the old sum.
        if (lane.lane() % 4 == 0) l[i][half] = lane.load_global(p.state.l + at + offset);
      }
    }
  }

  template <class Lane>
  RING_DEVICE static void store_state(Lane& lane, const ForwardParams& p, float (&u)[kM][kNV][4],
                                      float (&m)[kM][2], float (&l)[kM][2]) {
    const int row = first_row(lane) + lane_row(lane);
    const int64_t at = state_row(lane, p) + row;
    float* const to = p.state.u + at * Config::kDimV +
                      static_cast<int>(static_cast<uint32_t>(lane.lane()) % 4) * 2;
    RING_UNROLL
    for (int i = 0; i < kM; ++i) {
      RING_UNROLL
      for (int half = 0; half < 2; ++half) {
        float sum = l[i][half];
        sum += lane.shuffle_xor(sum, 1);
        sum += lane.shuffle_xor(sum, 2);
        const int offset = i * 16 + half * 8;
        if (row + offset >= p.q_rows) continue;
        RING_UNROLL
        for (int n = 0; n < kNV; ++n) {
          const simt::Float2 pair{u[i][n][2 * half], u[i][n][2 * half + 1]};
          lane.store_global(reinterpret_cast<simt::Float2*>(to + offset * Config::kDimV + n * 8),
                            pair);
        }
        if (lane.lane() % 4 != 0) continue;
        lane.store_global(p.state.m + at + offset, m[i][half]);
        lane.store_global(p.state.l + at + offset, sum);
      }
    }
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

  /// -inf for the keys that a row does not see.
  template <class Lane>
  RING_DEVICE static void hide_keys(Lane& lane, const ForwardParams& p, int first_key,
                                    float (&s)[kM][kN][4]) {
    const int row = first_row(lane) + lane_row(lane);
    const int key = first_key + static_cast<int>(static_cast<uint32_t>(lane.lane()) % 4) * 2;
    RING_UNROLL
    for (int i = 0; i < kM; ++i) {
      RING_UNROLL
      for (int half = 0; half < 2; ++half) {
        const int at = row + i * 16 + half * 8;
        KeyRange span{0, p.kv_rows};
        if (p.spans != nullptr && at < p.q_rows) span = lane.load_global(p.spans + at);
        const int seen = span.end - span.begin;
        const uint32_t keys = seen > 0 ? static_cast<uint32_t>(seen) : 0U;
        const int from = key - span.begin;
        RING_UNROLL
        for (int n = 0; n < kN; ++n) {
          RING_UNROLL
          for (int e = 0; e < 2; ++e) {
            const bool is_seen = static_cast<uint32_t>(from + n * 8 + e) < keys;
            if (!is_seen) s[i][n][2 * half + e] = -INFINITY;
          }
        }
      }
    }
  }

  /// S becomes P = 2^(s - m) with the new maximum m, to which u and l are brought.
  template <class Lane>
  RING_DEVICE static void weigh(Lane& lane, const ForwardParams& p, float (&s)[kM][kN][4],
                                float (&u)[kM][kNV][4], float (&m)[kM][2], float (&l)[kM][2]) {
    float top[kM][2];
    bool is_large = false;
    RING_UNROLL
    for (int i = 0; i < kM; ++i) {
      RING_UNROLL
      for (int half = 0; half < 2; ++half) {
        float largest = -INFINITY;
        RING_UNROLL
        for (int n = 0; n < kN; ++n) {
          largest = fmaxf(largest, fmaxf(s[i][n][2 * half], s[i][n][2 * half + 1]));
        }
        largest = fmaxf(largest, lane.shuffle_xor(largest, 1));
        largest = fmaxf(largest, lane.shuffle_xor(largest, 2));
        top[i][half] = largest;
        is_large = is_large || largest > p.largest_score;
      }
    }
    if (lane.any(is_large)) limit_scores(p, s, top);
    RING_UNROLL
    for (int i = 0; i < kM; ++i) {
      RING_UNROLL
      for (int half = 0; half < 2; ++half) {
        const float now = fmaxf(m[i][half], top[i][half] * p.scale_log2e);
        const float shift = now == -INFINITY ? 0.0F : now;
        const float keep = lane.exp2(m[i][half] - shift);
        m[i][half] = now;
        l[i][half] *= keep;
        RING_UNROLL
        for (int n = 0; n < kNV; ++n) {
          u[i][n][2 * half] *= keep;
          u[i][n][2 * half + 1] *= keep;
        }
        RING_UNROLL
        for (int n = 0; n < kN; ++n) {
          RING_UNROLL
          for (int e = 0; e < 2; ++e) {
            float& score = s[i][n][2 * half + e];
            score = lane.exp2(score * p.scale_log2e - shift);
            l[i][half] += score;
          }
        }
      }
    }
  }

  /// Dot products that overflowed.
  RING_DEVICE static void limit_scores(const ForwardParams& p, float (&s)[kM][kN][4],
                                       float (&top)[kM][2]) {
    RING_UNROLL
    for (int i = 0; i < kM; ++i) {
      RING_UNROLL
      for (int half = 0; half < 2; ++half) top[i][half] = fminf(top[i][half], p.largest_score);
      RING_UNROLL
      for (int n = 0; n < kN; ++n) {
        RING_UNROLL
        for (int e = 0; e < 4; ++e) s[i][n][e] = fminf(s[i][n][e], p.largest_score);
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
