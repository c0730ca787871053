// ForwardRows: the softmax of the rows that a lane shares, the same in all forward kernels.
#pragma once

#include <cmath>

#include "kernels/cuda/params.h"
#include "kernels/simt/macros.h"
#include "kernels/simt/types.h"

namespace ring::cuda {

/// A warp owns kM groups of 16 rows, the threads from Config::kFirstThread on the rows of the
/// block. Of a group, lane l holds rows l / 4 and l / 4 + 8 ("half") and columns 8 n + 2 (l % 4)
/// and the one after: element [n][2 half + e].
template <class Config, int kM>
class ForwardRows {
 public:
  static constexpr int kN = Config::kKeys / 8;   ///< Column groups of S.
  static constexpr int kNV = Config::kDimV / 8;  ///< Column groups of u.

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

  /// First row of the two (16 apart by m, 8 apart by half) of a lane, within the block of threads.
  template <class Lane>
  RING_DEVICE static int lane_row(const Lane& lane) {
    const auto thread = static_cast<uint32_t>(lane.fresh(lane.thread() - Config::kFirstThread));
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

  /// The largest score of every row; scores that overflowed are limited.
  template <class Lane>
  RING_DEVICE static void find_maxima(Lane& lane, const ForwardParams& p, float (&s)[kM][kN][4],
                                      float (&top)[kM][2]) {
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
  }

  /// The row's maximum becomes `now`'s; returns what the weights so far are to be multiplied by,
  /// and in `shift` what scaled scores are to be lowered by.
  template <class Lane>
  RING_DEVICE static float raise_maximum(Lane& lane, const ForwardParams& p, float top, float& m,
                                         float& l, float& shift) {
    const float now = fmaxf(m, top * p.scale_log2e);
    shift = now == -INFINITY ? 0.0F : now;
    const float keep = lane.exp2(m - shift);
    m = now;
    l *= keep;
    return keep;
  }

  RING_DEVICE static void rescale(float (&u)[kNV][4], int half, float keep) {
    RING_UNROLL
    for (int n = 0; n < kNV; ++n) {
      u[n][2 * half] *= keep;
      u[n][2 * half + 1] *= keep;
    }
  }

  /// Scores of a row become weights 2^(s - shift), which are added to l.
  template <class Lane>
  RING_DEVICE static void weigh(Lane& lane, const ForwardParams& p, float (&s)[kN][4], int half,
                                float shift, float& l) {
    RING_UNROLL
    for (int n = 0; n < kN; ++n) {
      RING_UNROLL
      for (int e = 0; e < 2; ++e) {
        float& score = s[n][2 * half + e];
        score = lane.exp2(score * p.scale_log2e - shift);
        l += score;
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
};

}  // namespace ring::cuda
