// The backward block kernel, compiled once per instruction set.
#include "kernels/cpu/block_args.h"
#include "kernels/cpu/layout.h"
#include "kernels/cpu/targets.h"
#include "kernels/cpu/tiles.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attend_backward.cpp"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#include "kernels/cpu/micro_inl.h"
#include "kernels/cpu/pack_inl.h"

HWY_BEFORE_NAMESPACE();
namespace ring::cpu::HWY_NAMESPACE {
namespace {

// Query rows whose P and dS are kept at once: the sums over queries run over this many.
constexpr int kGroupRows = 96;
constexpr int kGroupTiles = kGroupRows / kTileRows;
// Keys per block: P and dS of a group and the panels of K and V stay in the second cache.
constexpr int kBlockKeys = 192;
static_assert(kGroupRows % kTileRows == 0 && kBlockKeys % kOuterRows == 0);
static_assert(kBlockKeys % kPanel == 0 && kUnitKeys % kBlockKeys == 0);

// The scratch arrays of one unit; W = kTileRows, T = tiles, G = groups of kGroupRows rows.
struct Scratch {
  RowTile* tiles;              // (T)
  int32_t *before, *end;       // (T, W) each lane sees the keys k with before < k < end
  float *shift, *delta;        // (T, W) lse log2 e and delta of each lane
  float *q, *dq;               // (T, dim_qk [padded to panels for dq], W)
  float* d_out;                // (T, dim_v, W)
  float *q_dims, *d_out_dims;  // (G, panel of dims, kGroupRows, kOuterWidth)
  float *k_rows, *v_rows;      // (panel of keys, dim, kPanel)
  float* k_dims;               // (panel of dims, key, kPanel)
  float *dk, *dv;              // (key, dim padded to kOuterWidth)
  float *weights, *slopes;     // (key, kGroupRows) P and scale * dS
  float* ones;                 // (W)
  float* rows;                 // (kMaxTileRows, kMaxHeadDim) widened rows
  float *zeros, *junk;         // (kMaxHeadDim) read from, written to, by lanes without a row
  int64_t bytes;
};

struct Unit {
  const BackwardArgs& args;
  const BackwardUnit& unit;
  int tiles;
  int dim_qk_panels, dim_qk_outer, dim_v_outer;  // dims padded to kPanel and kOuterWidth
  Scratch at;
};

Scratch carve(std::byte* base, const AttendShape& shape, int64_t tiles) {
  Carver carver(base);
  Scratch s;
  const int64_t lanes = tiles * kTileRows;
  const int64_t group_lanes = round_up(lanes, kGroupRows);
  const int64_t qk_outer = round_up(shape.dim_qk, kOuterWidth);
  const int64_t v_outer = round_up(shape.dim_v, kOuterWidth);
  s.tiles = carver.take<RowTile>(tiles);
  s.before = carver.take<int32_t>(lanes);
  s.end = carver.take<int32_t>(lanes);
  s.shift = carver.take<float>(lanes);
  s.delta = carver.take<float>(lanes);
  s.q = carver.take<float>(lanes * shape.dim_qk);
  s.dq = carver.take<float>(lanes * round_up(shape.dim_qk, kPanel));
  s.d_out = carver.take<float>(lanes * shape.dim_v);
  s.q_dims = carver.take<float>(group_lanes * qk_outer);
  s.d_out_dims = carver.take<float>(group_lanes * v_outer);
  s.k_rows = carver.take<float>(int64_t{kBlockKeys} * shape.dim_qk);
  s.v_rows = carver.take<float>(int64_t{kBlockKeys} * shape.dim_v);
  s.k_dims = carver.take<float>(int64_t{kBlockKeys} * round_up(shape.dim_qk, kPanel));
  s.dk = carver.take<float>(int64_t{kBlockKeys} * qk_outer);
  s.dv = carver.take<float>(int64_t{kBlockKeys} * v_outer);
  s.weights = carver.take<float>(int64_t{kBlockKeys} * kGroupRows);
  s.slopes = carver.take<float>(int64_t{kBlockKeys} * kGroupRows);
  s.ones = carver.take<float>(kTileRows);
  s.rows = carver.take<float>(int64_t{kMaxTileRows} * kMaxHeadDim);
  s.zeros = carver.take<float>(kMaxHeadDim);
  s.junk = carver.take<float>(kMaxHeadDim);
  s.bytes = carver.used_bytes();
  return s;
}

HeadRows head_rows(const AttendShape& shape, const ConstView& view, int64_t head, int dim) {
  return {shape.dtype, view.data, view.token_stride, head * view.head_stride, dim};
}

void load_lane_scalars(const Unit& u, int t, int i, const RowPlace& place) {
  const BackwardArgs& args = u.args;
  const int64_t lane = int64_t{t} * kTileRows + i;
  const int64_t stat = place.row * args.in.stats.token + place.head * args.in.stats.head;
  const float lse = args.in.lse[stat];
  const KeySpan span = span_of(args.shape, args.spans, u.at.tiles[t].first + i);
  const bool empty = lse == kNegInf;  // no weight anywhere, whatever the span says
  u.at.before[lane] = empty ? 0 : span.begin - 1;
  u.at.end[lane] = empty ? 0 : span.end;
  u.at.shift[lane] = empty ? 0.0F : lse * kLog2e;
  u.at.delta[lane] = args.in.delta[stat];
}

// Packs one row tensor of tile `t` transposed and, where `dims` is not null, as dim panels.
template <class RowOf>
void pack_tile(const Unit& u, int t, int dim, RowOf row_of, float* lanes, float* dims) {
  const float* rows[kTileRows];
  for (int i = 0; i < kTileRows; ++i) {
    rows[i] = i < u.at.tiles[t].rows ? row_of(i) : u.at.zeros;
  }
  pack_transposed(rows, kTileRows, dim, lanes, kTileRows);
  if (dims == nullptr) return;
  const int64_t outer = round_up(dim, kOuterWidth);
  float* group = dims + int64_t{t / kGroupTiles} * kGroupRows * outer;
  for (int i = 0; i < kTileRows; ++i) {
    const int64_t in_group = int64_t{t % kGroupTiles} * kTileRows + i;
    pack_dims(rows[i], dim, kOuterWidth, int64_t{kGroupRows} * kOuterWidth,
              group + in_group * kOuterWidth);
  }
}

float* query_sums(const BackwardOutput& out, const RowPlace& place) {
  return out.dq + place.row * out.q.token + place.head * out.q.head;
}

void load_tile(const Unit& u, int t) {
  const BackwardArgs& args = u.args;
  const AttendShape& shape = args.shape;
  const RowTile& tile = u.at.tiles[t];
  const int64_t lane = int64_t{t} * kTileRows;
  RowPlace places[kTileRows];
  for (int i = 0; i < kTileRows; ++i) {
    u.at.before[lane + i] = u.at.end[lane + i] = 0;
    u.at.shift[lane + i] = u.at.delta[lane + i] = 0.0F;
    if (i >= tile.rows) continue;
    places[i] = place_of(shape, u.unit.rows.kv_head, tile.first + i);
    load_lane_scalars(u, t, i, places[i]);
  }
  const auto stored = [&](const ConstView& view, int dim) {
    return [&, dim](int i) {
      return head_rows(shape, view, places[i].head, dim)
          .row(places[i].row, u.at.rows + int64_t{i} * kMaxHeadDim);
    };
  };
  pack_tile(u, t, shape.dim_qk, stored(args.in.q, shape.dim_qk), u.at.q + lane * shape.dim_qk,
            u.at.q_dims);
  pack_tile(u, t, shape.dim_v, stored(args.in.d_out, shape.dim_v), u.at.d_out + lane * shape.dim_v,
            u.at.d_out_dims);
  float* dq = u.at.dq + lane * u.dim_qk_panels;
  pack_tile(
      u, t, shape.dim_qk, [&](int i) { return query_sums(args.out, places[i]); }, dq, nullptr);
  for (int i = shape.dim_qk * kTileRows; i < u.dim_qk_panels * kTileRows; ++i) dq[i] = 0.0F;
}

void store_tile(const Unit& u, int t) {
  const AttendShape& shape = u.args.shape;
  const RowTile& tile = u.at.tiles[t];
  float* rows[kTileRows];
  for (int i = 0; i < kTileRows; ++i) {
    rows[i] = u.at.junk;
    if (i >= tile.rows) continue;
    rows[i] = query_sums(u.args.out, place_of(shape, u.unit.rows.kv_head, tile.first + i));
  }
  unpack_transposed(u.at.dq + int64_t{t} * kTileRows * u.dim_qk_panels, kTileRows,
                    static_cast<int>(round_up(tile.rows, 4)), shape.dim_qk, rows);
}

// Packs K and V of a block and fetches its sums.
void load_block(const Unit& u, int64_t first, int keys) {
  const BackwardArgs& args = u.args;
  const AttendShape& shape = args.shape;
  const int kv_head = u.unit.rows.kv_head;
  const HeadRows k = head_rows(shape, args.in.k, kv_head, shape.dim_qk);
  const HeadRows v = head_rows(shape, args.in.v, kv_head, shape.dim_v);
  pack_row_panels(k, first, keys, kPanel, u.at.zeros, u.at.rows, u.at.k_rows);
  pack_row_panels(v, first, keys, kPanel, u.at.zeros, u.at.rows, u.at.v_rows);
  pack_dim_panels(k, first, keys, static_cast<int>(round_up(keys, kPanel)), kPanel,
                  int64_t{kBlockKeys} * kPanel, u.at.zeros, u.at.rows, u.at.k_dims);
  std::memset(u.at.dk, 0, sizeof(float) * static_cast<size_t>(kBlockKeys * u.dim_qk_outer));
  std::memset(u.at.dv, 0, sizeof(float) * static_cast<size_t>(kBlockKeys * u.dim_v_outer));
}

void add_rows(const float* from, int64_t ld, int rows, int dim, float* to, int64_t to_ld) {
  for (int row = 0; row < rows; ++row) {
    for (int d = 0; d < dim; ++d) to[row * to_ld + d] += from[row * ld + d];
  }
}

void store_block(const Unit& u, int64_t first, int keys) {
  const AttendShape& shape = u.args.shape;
  const BackwardOutput& out = u.args.out;
  const int kv_head = u.unit.rows.kv_head;
  add_rows(u.at.dk, u.dim_qk_outer, keys, shape.dim_qk,
           out.dk + kv_head * out.k.head + first * out.k.token, out.k.token);
  add_rows(u.at.dv, u.dim_v_outer, keys, shape.dim_v,
           out.dv + kv_head * out.v.head + first * out.v.token, out.v.token);
}

// One tile against one block: where its columns of the group's P and dS begin.
struct TileView {
  int index;
  int64_t block_begin;
  TileKeys keys;
  float *weights, *slopes;
};

// Turns scores and dP of keys [lo, hi) into P and scale * dS.
template <bool kMasked>
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
    for (int key = lo; key < hi; ++key) {
      float* weight = tile.weights + key * kGroupRows + j * kLanes;
      float* slope = tile.slopes + key * kGroupRows + j * kLanes;
      Vf p = exp2_clamped(hn::MulSub(hn::Load(df, weight), exponent, shift));
      if (kMasked) {
        const auto at = hn::Set(di, static_cast<int32_t>(tile.block_begin + key));
        p = hn::IfThenElseZero(hn::RebindMask(df, hn::And(hn::Lt(before, at), hn::Lt(at, end))), p);
      }
      const Vf ds = hn::Mul(p, hn::Sub(hn::Load(df, slope), delta));
      hn::Store(p, df, weight);
      hn::Store(hn::Mul(ds, scale), df, slope);
    }
  }
}

// P and scale * dS of one tile for its keys of the block, and its share of dQ.
void weigh_tile(const Unit& u, const TileView& tile) {
  const AttendShape& shape = u.args.shape;
  const int64_t lane = int64_t{tile.index} * kTileRows;
  const TileKeys& keys = tile.keys;
  for (int key = keys.lo; key < keys.hi; key += kPanel) {
    score_panels<FloatProducts, 1, kVectors, false>(
        u.at.k_rows + int64_t{key} * shape.dim_qk, shape.dim_qk, u.at.q + lane * shape.dim_qk,
        tile.weights + key * kGroupRows, kGroupRows, nullptr);
    score_panels<FloatProducts, 1, kVectors, false>(
        u.at.v_rows + int64_t{key} * shape.dim_v, shape.dim_v, u.at.d_out + lane * shape.dim_v,
        tile.slopes + key * kGroupRows, kGroupRows, nullptr);
  }
  weigh_range<true>(u, tile, keys.lo, keys.core_lo);
  weigh_range<false>(u, tile, keys.core_lo, keys.core_hi);
  weigh_range<true>(u, tile, keys.core_hi, keys.hi);
  float* dq = u.at.dq + lane * u.dim_qk_panels;
  const int64_t stride = int64_t{kBlockKeys} * kPanel;
  for (int panel = 0; panel < u.dim_qk_panels / kPanel; ++panel) {
    value_panels<FloatProducts, 1, kVectors, false>(
        u.at.k_dims + panel * stride + int64_t{keys.lo} * kPanel, stride,
        tile.slopes + keys.lo * kGroupRows, kGroupRows, keys.hi - keys.lo, u.at.ones,
        dq + panel * kPanel * kTileRows);
  }
}

// Zeros in the tile's columns of P and dS for keys [lo, hi).
void clear_columns(const TileView& tile, int lo, int hi) {
  for (int key = lo; key < hi; ++key) {
    std::memset(tile.weights + key * kGroupRows, 0, sizeof(float) * kTileRows);
    std::memset(tile.slopes + key * kGroupRows, 0, sizeof(float) * kTileRows);
  }
}

// sums (key, dim) += columns^T rows for keys [lo, hi), over `rows` queries of the group.
void add_products(const float* columns, const float* dims, int padded_dim, int lo, int hi, int rows,
                  float* sums) {
  for (int d = 0; d < padded_dim; d += kOuterWidth) {
    const float* panel = dims + int64_t{d} * kGroupRows;
    for (int key = lo; key < hi; key += kOuterRows) {
      add_outer(columns + key * kGroupRows, kGroupRows, panel, rows,
                sums + int64_t{key} * padded_dim + d, padded_dim);
    }
  }
}

// Tiles [first, last) against one block of keys.
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
    if (tile.keys.empty()) continue;
    lo = std::min(lo, tile.keys.lo / kOuterRows * kOuterRows);
    hi = std::max(hi, static_cast<int>(round_up(tile.keys.hi, kOuterRows)));
  }
  if (lo >= hi) return;
  for (int t = first; t < last; ++t) {
    const TileView& tile = tiles[t - first];
    if (tile.keys.empty()) {
      clear_columns(tile, lo, hi);
      continue;
    }
    weigh_tile(u, tile);
    clear_columns(tile, lo, tile.keys.lo);
    clear_columns(tile, tile.keys.hi, hi);
  }
  const int64_t group = first / kGroupTiles;
  const int rows = (last - first) * kTileRows;
  add_products(u.at.weights, u.at.d_out_dims + group * kGroupRows * u.dim_v_outer, u.dim_v_outer,
               lo, hi, rows, u.at.dv);
  add_products(u.at.slopes, u.at.q_dims + group * kGroupRows * u.dim_qk_outer, u.dim_qk_outer, lo,
               hi, rows, u.at.dk);
}

}  // namespace

void BackwardRows(const BackwardArgs& args, const BackwardUnit& unit, Workspace& workspace) {
  const AttendShape& shape = args.shape;
  const int64_t most = most_tiles(shape, unit.rows.end - unit.rows.begin, kTileRows);
  const int64_t bytes = carve(nullptr, shape, most).bytes;
  Unit u{.args = args,
         .unit = unit,
         .tiles = 0,
         .dim_qk_panels = static_cast<int>(round_up(shape.dim_qk, kPanel)),
         .dim_qk_outer = static_cast<int>(round_up(shape.dim_qk, kOuterWidth)),
         .dim_v_outer = static_cast<int>(round_up(shape.dim_v, kOuterWidth)),
         .at = carve(workspace.reserve(bytes), shape, most)};
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
      run_group(u, t, std::min(t + kGroupTiles, u.tiles), key, keys);
    }
    store_block(u, key, keys);
  }
  for (int t = 0; t < u.tiles; ++t) store_tile(u, t);
}

// delta[i * stride] = out_i . d_out_i over the rows of one head.
void RowDots(const AttendShape& shape, ConstView out, ConstView d_out, int64_t head, float* delta,
             int64_t stride) {
  const Df df;
  const HeadRows a_rows = head_rows(shape, out, head, shape.dim_v);
  const HeadRows b_rows = head_rows(shape, d_out, head, shape.dim_v);
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
HWY_EXPORT(RowDots);

void attend_backward_unit(const BackwardArgs& args, const BackwardUnit& unit,
                          Workspace& workspace) {
  HWY_DYNAMIC_DISPATCH(BackwardRows)(args, unit, workspace);
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
