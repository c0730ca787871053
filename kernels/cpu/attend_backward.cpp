// The backward block kernel, compiled once per instruction set.
#include "kernels/cpu/block_args.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/layout.h"
#include "kernels/cpu/targets.h"
#include "kernels/cpu/tiles.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attend_backward.cpp"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#include "kernels/cpu/backward_unit_inl.h"
#include "kernels/cpu/micro_inl.h"
#include "kernels/cpu/pack_inl.h"

HWY_BEFORE_NAMESPACE();
namespace ring::cpu::HWY_NAMESPACE {
namespace {

// One tile against one block: where its columns of the group's P and dS begin.
struct TileView {
  int index;
  int64_t block_begin;
  TileKeys keys;
  float *weights, *slopes;
  uint16_t *weights_narrow, *slopes_narrow;
};

// Turns scores and dP of keys [lo, hi), an even number, into P and scale * dS. For PairProducts
// both go to the narrow arrays as well, and pairs of dS of two keys take the place of dP.
template <class Products, bool kMasked>
void weigh_range(const Unit& u, const TileView& tile, int lo, int hi) {
  const Df df;
  const hn::RebindToSigned<Df> di;
  const Vf scale = hn::Set(df, u.args.shape.scale);
  const Vf exponent = hn::Set(df, u.args.shape.scale * kLog2e);
  for (int j = 0; j < kVectors; ++j) {
    const int64_t lane = int64_t{tile.index} * kTileRows + j * kLanes;
    const Vf shift = hn::Load(df, u.at.shift + lane);
    const Vf delta = hn::Load(df, u.at.delta + lane);
    const auto before = hn::Load(di, u.at.before + lane);
    const auto end = hn::Load(di, u.at.end + lane);
    for (int key = lo; key < hi; key += 2) {
      float* weight = tile.weights + key * kGroupRows + j * kLanes;
      float* slope = tile.slopes + key * kGroupRows + j * kLanes;
      Vf p[2];
      Vf ds[2];
      for (int i = 0; i < 2; ++i) {
        p[i] = hn::MulSub(hn::Load(df, weight + i * kGroupRows), exponent, shift);
      }
      exp2_clamped(p);
      for (int i = 0; i < 2; ++i) {
        if (kMasked) {
          const auto at = hn::Set(di, static_cast<int32_t>(tile.block_begin + key + i));
          const auto seen = hn::And(hn::Lt(before, at), hn::Lt(at, end));
          p[i] = hn::IfThenElseZero(hn::RebindMask(df, seen), p[i]);
        }
        ds[i] = hn::Mul(p[i], hn::Sub(hn::Load(df, slope + i * kGroupRows), delta));
        ds[i] = hn::Mul(ds[i], scale);
        if constexpr (Products::kDepth == 1) {
          hn::Store(p[i], df, weight + i * kGroupRows);
          hn::Store(ds[i], df, slope + i * kGroupRows);
        } else {
          const int at = (key + i) * kGroupRows + j * kLanes;
          Products::store_narrow(p[i], tile.weights_narrow + at);
          Products::store_narrow(ds[i], tile.slopes_narrow + at);
        }
      }
      if constexpr (Products::kDepth == 2) {
        hn::Store(Products::pair(ds[0], ds[1]), df,
                  tile.slopes + key / 2 * kGroupRows + j * kLanes);
      }
    }
  }
}

// Scores and dP of one tile. Apart, as the other products are: inlined, constants of the loops
// around them would take registers from the accumulators.
template <class Products>
HWY_NOINLINE void score_tile(const Unit& u, const TileView& tile) {
  const int64_t lane = int64_t{tile.index} * kTileRows;
  for (int key = tile.keys.lo; key < tile.keys.hi; key += kPanel) {
    score_panels<Products, 1, kVectors, false>(
        u.at.k_rows + int64_t{key} * u.qk_steps, u.qk_steps, u.at.q + lane * u.qk_steps,
        tile.weights + key * kGroupRows, kGroupRows, nullptr);
    score_panels<Products, 1, kVectors, false>(u.at.v_rows + int64_t{key} * u.v_steps, u.v_steps,
                                               u.at.d_out + lane * u.v_steps,
                                               tile.slopes + key * kGroupRows, kGroupRows, nullptr);
  }
}

// The tile's share of dQ.
template <class Products>
HWY_NOINLINE void add_query_sums(const Unit& u, const TileView& tile) {
  float* dq = u.at.dq + int64_t{tile.index} * kTileRows * u.dim_qk_panels;
  const int first = tile.keys.lo / Products::kDepth;
  const int steps = tile.keys.hi / Products::kDepth - first;
  for (int panel = 0; panel < u.dim_qk_panels / kPanel; ++panel) {
    value_panels<Products, 1, kVectors, false>(
        u.at.k_dims + panel * u.key_stride() + int64_t{first} * kPanel, u.key_stride(),
        tile.slopes + first * kGroupRows, kGroupRows, steps, u.at.ones,
        dq + panel * kPanel * kTileRows);
  }
}

// P and scale * dS of one tile for its keys of the block, and its share of dQ.
template <class Products>
void weigh_tile(const Unit& u, const TileView& tile) {
  const TileKeys& keys = tile.keys;
  score_tile<Products>(u, tile);
  weigh_range<Products, true>(u, tile, keys.lo, keys.core_lo);
  weigh_range<Products, false>(u, tile, keys.core_lo, keys.core_hi);
  weigh_range<Products, true>(u, tile, keys.core_hi, keys.hi);
  add_query_sums<Products>(u, tile);
}

// Zeros in the tile's columns of P and dS for keys [lo, hi).
template <class Products>
void clear_columns(const TileView& tile, int lo, int hi) {
  for (int key = lo; key < hi; ++key) {
    if constexpr (Products::kDepth == 1) {
      std::memset(tile.weights + key * kGroupRows, 0, sizeof(float) * kTileRows);
      std::memset(tile.slopes + key * kGroupRows, 0, sizeof(float) * kTileRows);
    } else {
      std::memset(tile.weights_narrow + key * kGroupRows, 0, sizeof(uint16_t) * kTileRows);
      std::memset(tile.slopes_narrow + key * kGroupRows, 0, sizeof(uint16_t) * kTileRows);
    }
  }
}

// sums (key, dim) += columns^T rows for keys [lo, hi), over `rows` queries of a group; a key's
// columns are numbers, or pairs of two queries.
template <class Products>
HWY_NOINLINE void add_products(const Unit& u, const float* columns, const float* dims,
                               int padded_dim, int lo, int hi, int rows, float* sums) {
  constexpr int kColumns = kGroupRows / Products::kDepth;
  for (int d = 0; d < padded_dim; d += kOuterWidth) {
    const float* panel = dims + d / kOuterWidth * u.group_stride();
    for (int key = lo; key < hi; key += kOuterRows) {
      add_outer<Products>(columns + key * kColumns, kColumns, panel, rows / Products::kDepth,
                          sums + int64_t{key} * padded_dim + d, padded_dim);
    }
  }
}

// Tiles [first, last) against one block of keys.
template <class Products>
void run_group(const Unit& u, int first, int last, int64_t block_begin, int keys) {
  TileView tiles[kGroupTiles];
  int lo = kBlockKeys;
  int hi = 0;
  for (int t = first; t < last; ++t) {
    TileView& tile = tiles[t - first];
    tile.index = t;
    tile.block_begin = block_begin;
    tile.keys = keys_in_block(u.at.tiles[t], block_begin, keys, kPanel);
    tile.weights = u.at.weights + (t - first) * kTileRows;
    tile.slopes = u.at.slopes + (t - first) * kTileRows;
    tile.weights_narrow = u.at.weights_narrow + (t - first) * kTileRows;
    tile.slopes_narrow = u.at.slopes_narrow + (t - first) * kTileRows;
    if (tile.keys.empty()) continue;
    lo = std::min(lo, tile.keys.lo / kOuterRows * kOuterRows);
    hi = std::max(hi, static_cast<int>(round_up(tile.keys.hi, kOuterRows)));
  }
  if (lo >= hi) return;
  for (int t = first; t < last; ++t) {
    const TileView& tile = tiles[t - first];
    if (tile.keys.empty()) {
      clear_columns<Products>(tile, lo, hi);
      continue;
    }
    weigh_tile<Products>(u, tile);
    clear_columns<Products>(tile, lo, tile.keys.lo);
    clear_columns<Products>(tile, tile.keys.hi, hi);
  }
  const int64_t group = first / kGroupTiles;
  const int rows = (last - first) * kTileRows;
  const bool pairs = Products::kDepth == 2;
  const float* weights = pairs ? reinterpret_cast<const float*>(u.at.weights_narrow) : u.at.weights;
  const float* slopes = pairs ? reinterpret_cast<const float*>(u.at.slopes_narrow) : u.at.slopes;
  add_products<Products>(u, weights, u.at.d_out_dims + group * u.dims_stride(u.dim_v_outer),
                         u.dim_v_outer, lo, hi, rows, u.at.dv);
  add_products<Products>(u, slopes, u.at.q_dims + group * u.dims_stride(u.dim_qk_outer),
                         u.dim_qk_outer, lo, hi, rows, u.at.dk);
}

template <class Products>
void run_unit(const BackwardArgs& args, const BackwardUnit& unit, Workspace& workspace) {
  const AttendShape& shape = args.shape;
  constexpr int kDepth = Products::kDepth;
  Unit u{.args = args,
         .unit = unit,
         .tiles = 0,
         .depth = kDepth,
         .qk_steps = steps_of(shape.dim_qk, kDepth),
         .v_steps = steps_of(shape.dim_v, kDepth),
         .dim_qk_panels = static_cast<int>(round_up(shape.dim_qk, kPanel)),
         .dim_qk_outer = static_cast<int>(round_up(shape.dim_qk, kOuterWidth)),
         .dim_v_outer = static_cast<int>(round_up(shape.dim_v, kOuterWidth)),
         .at = {}};
  const int64_t most = most_tiles(shape, unit.rows.end - unit.rows.begin, kTileRows);
  u.at = carve(workspace.reserve(carve(nullptr, u, most).bytes), u, most);
  std::memset(u.at.zeros, 0, sizeof(float) * kMaxHeadDim);
  std::fill_n(u.at.ones, kTileRows, 1.0F);
  int64_t key_begin = unit.key_end;
  int64_t key_end = unit.key_begin;
  // Tiles that see no key of the unit are left out: they are not packed, and take no place in a
  // group.
  for (int64_t row = unit.rows.begin; row < unit.rows.end;) {
    RowTile& tile = u.at.tiles[u.tiles];
    tile = make_tile(shape, args.spans, row, unit.rows.end, kTileRows);
    row += tile.rows;
    const int64_t begin = std::max<int64_t>(tile.hull_begin, unit.key_begin);
    const int64_t end = std::min<int64_t>(tile.hull_end, unit.key_end);
    if (begin >= end) continue;
    key_begin = std::min(key_begin, begin);
    key_end = std::max(key_end, end);
    ++u.tiles;
  }
  if (u.tiles == 0) return;
  for (int t = 0; t < u.tiles; ++t) load_tile(u, t);
  for (int64_t key = key_begin / kBlockKeys * kBlockKeys; key < key_end; key += kBlockKeys) {
    const int keys = static_cast<int>(std::min<int64_t>(kBlockKeys, shape.kv_rows - key));
    load_block(u, key, keys);
    for (int t = 0; t < u.tiles; t += kGroupTiles) {
      run_group<Products>(u, t, std::min(t + kGroupTiles, u.tiles), key, keys);
    }
    store_block(u, key, keys);
  }
  for (int t = 0; t < u.tiles; ++t) store_tile(u, t);
}

}  // namespace

void BackwardRows(const BackwardArgs& args, const BackwardUnit& unit, Workspace& workspace) {
  run_unit<FloatProducts>(args, unit, workspace);
}

// The tensors are bf16.
void BackwardRowsInPairs(const BackwardArgs& args, const BackwardUnit& unit, Workspace& workspace) {
  run_unit<PairProducts>(args, unit, workspace);
}

// delta[i * stride] = out_i . d_out_i over the rows of one head.
void RowDots(const AttendShape& shape, ConstView out, ConstView d_out, int64_t head, float* delta,
             int64_t stride) {
  const Df df;
  const HeadRows a_rows = head_rows(shape, out, head, shape.dim_v, 1);
  const HeadRows b_rows = head_rows(shape, d_out, head, shape.dim_v, 1);
  float a_scratch[kMaxHeadDim];
  float b_scratch[kMaxHeadDim];
  for (int64_t row = 0; row < shape.q_rows; ++row) {
    const float* a = a_rows.row(row, a_scratch);
    const float* b = b_rows.row(row, b_scratch);
    Vf sums = hn::Zero(df);
    int d = 0;
    for (; d + kLanes <= shape.dim_v; d += kLanes) {
      sums = hn::MulAdd(hn::LoadU(df, a + d), hn::LoadU(df, b + d), sums);
    }
    float sum = hn::GetLane(hn::SumOfLanes(df, sums));
    for (; d < shape.dim_v; ++d) sum += a[d] * b[d];
    delta[row * stride] = sum;
  }
}

}  // namespace ring::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ring::cpu {

HWY_EXPORT(BackwardRows);
HWY_EXPORT(BackwardRowsInPairs);
HWY_EXPORT(RowDots);

void attend_backward_unit(const BackwardArgs& args, const BackwardUnit& unit,
                          Workspace& workspace) {
  if (uses_bf16_products(args.shape.dtype)) {
    HWY_DYNAMIC_DISPATCH(BackwardRowsInPairs)(args, unit, workspace);
  } else {
    HWY_DYNAMIC_DISPATCH(BackwardRows)(args, unit, workspace);
  }
}

void attend_backward(const AttendShape& shape, const BackwardInput& input, const KeySpan* spans,
                     BackwardOutput output, Workspace& workspace) {
  check_shape(shape);
  if (shape.q_rows == 0 || shape.kv_rows == 0) return;
  const BackwardArgs args = backward_args(shape, input, spans, output);
  const int64_t rows = stacked_rows(shape);
  for (int kv_head = 0; kv_head < shape.kv_heads; ++kv_head) {
    for (int64_t key = 0; key < shape.kv_rows; key += kUnitKeys) {
      for (int64_t row = 0; row < rows; row += kUnitRows) {
        const RowRange range{kv_head, row, std::min(row + kUnitRows, rows)};
        attend_backward_unit(args, {range, key, std::min(key + kUnitKeys, shape.kv_rows)},
                             workspace);
      }
    }
  }
}

void compute_delta(const AttendShape& shape, ConstView out, ConstView d_out, float* delta,
                   Strides stats) {
  check_shape(shape);
  if (stats.head == 0) stats = {1, shape.q_rows};
  for (int64_t head = 0; head < shape.heads; ++head) {
    HWY_DYNAMIC_DISPATCH(RowDots)(shape, out, d_out, head, delta + head * stats.head, stats.token);
  }
}

}  // namespace ring::cpu
#endif
