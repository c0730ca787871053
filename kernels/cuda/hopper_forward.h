// The forward block kernel for sm_90a: wgmma on tiles that one warp fetches with bulk tensor
// copies.
//
// Three warpgroups. The first fetches: Q once, then K and V tile by tile into two stages each, from
// the last tile of keys that the rows see back. The other two own 64 of the 128 query rows each:
// Q K^T of a tile runs while the weights of the one before are multiplied with V, and its softmax
// while that product goes on. Nothing but barriers with phases makes order between them.
// Not run on hardware yet.
#pragma once

#include "kernels/cuda/forward_rows.h"
#include "kernels/cuda/params.h"
#include "kernels/cuda/tile.h"
#include "kernels/cuda/tile_range.h"
#include "kernels/simt/matrix_descriptor.h"
#include "kernels/simt/tensor_map.h"

namespace ring::cuda {

/// `q`, `k` and `v` describe the tensors of `forward` (hopper_tensors).
struct HopperParams {
  simt::TensorMap q, k, v;
  ForwardParams forward;
};

template <class ElementOf, int kDimOf, int kKeysOf>
struct HopperConfig {
  using Element = ElementOf;
  static constexpr int kDimQk = kDimOf;
  static constexpr int kDimV = kDimOf;
  static constexpr int kRows = 128;
  static constexpr int kKeys = kKeysOf;
  static constexpr int kStages = 2;
  static constexpr int kGroup = 4 * simt::kWarp;  ///< Threads of a warpgroup.
  static constexpr int kFirstThread = kGroup;     ///< That owns rows.
  static constexpr int kThreads = 3 * kGroup;
  /// Registers of a thread at the start, then of those that fetch and those that compute.
  static constexpr int kRegisters = 168, kFetching = 24, kComputing = 240;
  static_assert(kFetching + 2 * kComputing <= 3 * kRegisters);
  using QTile = Tile<kRows, kDimOf>;
  using KeyTile = Tile<kKeys, kDimOf>;
  static constexpr int kTileBytes = QTile::kBytes + 2 * kStages * KeyTile::kBytes;
  /// Tiles, barriers (Q, and K and V full and empty by stage), and room to align them.
  static constexpr int kSharedBytes = kTileBytes + 8 * (1 + 4 * kStages) + simt::kSwizzleAtomBytes;
  static_assert(QTile::kPanel == 64, "the swizzle takes rows of 128 bytes");
};

template <class Config>
class HopperForward {
 public:
  using Element = typename Config::Element;
  using Rows = ForwardRows<Config, 1>;
  static constexpr int kN = Rows::kN, kNV = Rows::kNV;
  static constexpr int kSteps = Config::kKeys / 16;

  template <class Lane>
  RING_DEVICE static void run(Lane& lane, const HopperParams& p) {
    const TileRange tiles = tile_range<Config>(lane, p.forward.spans, p.forward.q_rows,
                                               p.forward.kv_rows, Rows::first_row(lane));
    if (tiles.begin == tiles.end && p.forward.starts_state == 0) return;
    const Shared shared(lane);
    begin_barriers(lane, shared);
    if (lane.warp() < 4) {
      lane.template give_registers<Config::kFetching>();
      if (lane.warp() == 0 && tiles.begin < tiles.end) fetch(lane, p, shared, tiles);
    } else {
      lane.template take_registers<Config::kComputing>();
      compute(lane, p.forward, shared, tiles);
    }
  }

 private:
  using Address = simt::SharedAddress;

  /// Where things are. K and V take turns: stage s of K, stage s of V.
  struct Shared {
    template <class Lane>
    RING_DEVICE explicit Shared(const Lane& lane)
        : begin((lane.shared_begin() + simt::kSwizzleAtomBytes - 1) / simt::kSwizzleAtomBytes *
                simt::kSwizzleAtomBytes) {}
    RING_DEVICE Address q() const { return begin; }
    RING_DEVICE Address k(int stage) const { return tile(2 * stage); }
    RING_DEVICE Address v(int stage) const { return tile(2 * stage + 1); }
    RING_DEVICE Address q_full() const { return barrier(0); }
    RING_DEVICE Address k_full(int stage) const { return barrier(1 + 4 * stage); }
    RING_DEVICE Address k_empty(int stage) const { return barrier(2 + 4 * stage); }
    RING_DEVICE Address v_full(int stage) const { return barrier(3 + 4 * stage); }
    RING_DEVICE Address v_empty(int stage) const { return barrier(4 + 4 * stage); }
    RING_DEVICE Address tile(int number) const {
      return begin + static_cast<Address>(Config::QTile::kBytes + number * Config::KeyTile::kBytes);
    }
    RING_DEVICE Address barrier(int number) const {
      return begin + static_cast<Address>(Config::kTileBytes + 8 * number);
    }
    Address begin;
  };

  template <class Lane>
  RING_DEVICE static void begin_barriers(Lane& lane, const Shared& shared) {
    constexpr int kComputingWarps = 8;
    if (lane.warp() == 0) {
      const bool is_one = lane.lane() == 0;
      lane.init_barrier(shared.q_full(), 1, is_one);
      RING_UNROLL
      for (int stage = 0; stage < Config::kStages; ++stage) {
        lane.init_barrier(shared.k_full(stage), 1, is_one);
        lane.init_barrier(shared.v_full(stage), 1, is_one);
        lane.init_barrier(shared.k_empty(stage), kComputingWarps, is_one);
        lane.init_barrier(shared.v_empty(stage), kComputingWarps, is_one);
      }
      lane.fence_barriers();
    }
    lane.sync_block();
  }

  /// Rows [row, row + T::kRows) of a head, panel by panel.
  template <class T, class Lane>
  RING_DEVICE static void fetch_tile(Lane& lane, Address to, const simt::TensorMap& map, int row,
                                     int head, Address full) {
    const bool is_one = lane.lane() == 0;
    lane.arrive_announcing(full, T::kBytes, is_one);
    RING_UNROLL
    for (int panel = 0; panel < T::kDim / T::kPanel; ++panel) {
      lane.copy_tensor(to + static_cast<Address>(panel * T::kPanelBytes), map,
                       {panel * T::kPanel, row, head, lane.block_z()}, full, is_one);
    }
  }

  template <class Lane>
  RING_DEVICE static void fetch(Lane& lane, const HopperParams& p, const Shared& shared,
                                const TileRange& tiles) {
    using KeyTile = typename Config::KeyTile;
    fetch_tile<typename Config::QTile>(lane, shared.q(), p.q, Rows::first_row(lane), lane.block_y(),
                                       shared.q_full());
    const int head = Rows::kv_head(lane, p.forward);
    int stage = 0, parity = 1;  // Stages are empty at first.
    RING_NO_UNROLL
    for (int tile = tiles.end - 1; tile >= tiles.begin; --tile) {
      lane.wait_phase(shared.k_empty(stage), parity);
      fetch_tile<KeyTile>(lane, shared.k(stage), p.k, tile * Config::kKeys, head,
                          shared.k_full(stage));
      lane.wait_phase(shared.v_empty(stage), parity);
      fetch_tile<KeyTile>(lane, shared.v(stage), p.v, tile * Config::kKeys, head,
                          shared.v_full(stage));
      if (++stage == Config::kStages) {
        stage = 0;
        parity ^= 1;
      }
    }
  }

  template <class Lane>
  RING_DEVICE static void compute(Lane& lane, const ForwardParams& p, const Shared& shared,
                                  const TileRange& tiles) {
    float u[1][kNV][4], m[1][2], l[1][2];
    Rows::load_state(lane, p, u, m, l);
    if (tiles.begin < tiles.end) attend(lane, p, shared, tiles, u, m, l);
    Rows::store_state(lane, p, u, m, l);
  }

  template <class Lane>
  RING_DEVICE static void attend(Lane& lane, const ForwardParams& p, const Shared& shared,
                                 const TileRange& tiles, float (&u)[1][kNV][4], float (&m)[1][2],
                                 float (&l)[1][2]) {
    const bool is_one = lane.lane() == 0;
    float s[1][kN][4], keep[2];
    uint32_t weights[kSteps][4];
    int tile = tiles.end - 1;
    lane.wait_phase(shared.q_full(), 0);
    lane.wait_phase(shared.k_full(0), 0);
    lane.wgmma_fence(s[0]);
    multiply_keys(lane, shared, 0, s[0]);
    lane.template wgmma_wait<0>(s[0]);
    lane.arrive(shared.k_empty(0), is_one);
    weigh(lane, p, tiles, tile, s, m, l, keep);
    rescale_and_pack(lane, s[0], keep, u[0], weights);
    // K is a tile ahead of V.
    int stage = 0, parity = 0;
    RING_NO_UNROLL
    for (--tile; tile >= tiles.begin; --tile) {
      const int last_stage = stage, last_parity = parity;
      if (++stage == Config::kStages) {
        stage = 0;
        parity ^= 1;
      }
      lane.wait_phase(shared.v_full(last_stage), last_parity);
      lane.wait_phase(shared.k_full(stage), parity);
      lane.wgmma_fence(s[0], u[0], weights);
      multiply_keys(lane, shared, stage, s[0]);
      add_values(lane, shared, last_stage, weights, u[0]);
      lane.template wgmma_wait<1>(s[0]);
      lane.arrive(shared.k_empty(stage), is_one);
      weigh(lane, p, tiles, tile, s, m, l, keep);
      lane.template wgmma_wait<0>(u[0], weights);
      lane.arrive(shared.v_empty(last_stage), is_one);
      rescale_and_pack(lane, s[0], keep, u[0], weights);
    }
    lane.wait_phase(shared.v_full(stage), parity);
    lane.wgmma_fence(u[0], weights);
    add_values(lane, shared, stage, weights, u[0]);
    lane.template wgmma_wait<0>(u[0], weights);
  }

  /// Starts S = Q K^T, raw.
  template <class Lane>
  RING_DEVICE static void multiply_keys(Lane& lane, const Shared& shared, int stage,
                                        float (&s)[kN][4]) {
    using QTile = typename Config::QTile;
    using KeyTile = typename Config::KeyTile;
    const auto group = static_cast<uint32_t>(lane.warp() / 4 - 1);
    const Address q = shared.q() + group * static_cast<uint32_t>(64 * QTile::kRowBytes);
    const Address k = shared.k(stage);
    RING_UNROLL
    for (int step = 0; step < Config::kDimQk / 16; ++step) {
      const int panel = step / 4, within = step % 4 * 32;
      lane.wgmma(
          Element{}, s, rows_of(q + static_cast<Address>(panel * QTile::kPanelBytes + within)),
          rows_of(k + static_cast<Address>(panel * KeyTile::kPanelBytes + within)), step > 0);
    }
    lane.wgmma_commit();
  }

  /// Starts u += P V.
  template <class Lane>
  RING_DEVICE static void add_values(Lane& lane, const Shared& shared, int stage,
                                     const uint32_t (&weights)[kSteps][4], float (&u)[kNV][4]) {
    using KeyTile = typename Config::KeyTile;
    RING_UNROLL
    for (int step = 0; step < kSteps; ++step) {
      const Address v = shared.v(stage) + static_cast<Address>(step * 16 * KeyTile::kRowBytes);
      lane.wgmma_columns(Element{}, u, weights[step],
                         simt::matrix_descriptor(v, KeyTile::kPanelBytes, simt::kSwizzleAtomBytes));
    }
    lane.wgmma_commit();
  }

  /// Rows whose k index is contiguous; the leading offset is not used with the swizzle.
  RING_DEVICE static uint64_t rows_of(Address at) {
    return simt::matrix_descriptor(at, simt::kCopyBytes, simt::kSwizzleAtomBytes);
  }

  /// S becomes P; `keep` is what u has to be multiplied by before P V is added.
  template <class Lane>
  RING_DEVICE static void weigh(Lane& lane, const ForwardParams& p, const TileRange& tiles,
                                int tile, float (&s)[1][kN][4], float (&m)[1][2], float (&l)[1][2],
                                float (&keep)[2]) {
    if (tile < tiles.whole_begin || tile >= tiles.whole_end)
      Rows::hide_keys(lane, p, tile * Config::kKeys, s);
    float top[1][2];
    Rows::find_maxima(lane, p, s, top);
    RING_UNROLL
    for (int half = 0; half < 2; ++half) {
      float shift;
      keep[half] = Rows::raise_maximum(lane, p, top[0][half], m[0][half], l[0][half], shift);
      Rows::weigh(lane, p, s[0], half, shift, l[0][half]);
    }
  }

  /// The accumulators of S are laid out as the left side, in registers, of the product with V.
  template <class Lane>
  RING_DEVICE static void rescale_and_pack(Lane& lane, const float (&s)[kN][4],
                                           const float (&keep)[2], float (&u)[kNV][4],
                                           uint32_t (&weights)[kSteps][4]) {
    Rows::rescale(u, 0, keep[0]);
    Rows::rescale(u, 1, keep[1]);
    RING_UNROLL
    for (int step = 0; step < kSteps; ++step) {
      RING_UNROLL
      for (int part = 0; part < 4; ++part) {
        const float(&pair)[4] = s[2 * step + part / 2];
        weights[step][part] = lane.pack(Element{}, pair[part % 2 * 2], pair[part % 2 * 2 + 1]);
      }
    }
  }
};

/// The tensors that HopperParams describes: (dim, token, head, batch).
struct HopperTensors {
  simt::TensorShape q, k, v;
};
inline simt::TensorShape hopper_tensor(const ConstTensor& tensor, int dim, int rows, int heads,
                                       int batch, int box_rows) {
  simt::TensorShape shape;
  shape.data = tensor.data;
  shape.extents = {dim, rows, heads, batch};
  shape.stride_bytes = {2, 2 * tensor.token_stride, 2 * tensor.head_stride,
                        2 * tensor.batch_stride};
  // The stride of a dim of one element is never used, but it may not be 0.
  for (size_t i = 1; i < shape.extents.size(); ++i) {
    if (shape.extents[i] == 1) shape.stride_bytes[i] = 2 * dim;
  }
  shape.box_columns = 64;
  shape.box_rows = box_rows;
  return shape;
}
/// `rows` and `keys` of a tile.
inline HopperTensors hopper_tensors(const ForwardParams& p, int dim, int heads, int batch, int rows,
                                    int keys) {
  // Heads of K and V that the last query head comes to.
  const auto last = static_cast<uint32_t>(heads - 1);
  const int kv_heads = static_cast<int>(last * p.group_inverse >> 16) + 1;
  return {hopper_tensor(p.q, dim, p.q_rows, heads, batch, rows),
          hopper_tensor(p.k, dim, p.kv_rows, kv_heads, batch, keys),
          hopper_tensor(p.v, dim, p.kv_rows, kv_heads, batch, keys)};
}

template <class Config>
simt::LaunchShape hopper_shape(const ForwardParams& p, int heads, int batch) {
  return {(p.q_rows + Config::kRows - 1) / Config::kRows, heads, batch, Config::kThreads,
          Config::kSharedBytes};
}

}  // namespace ring::cuda
