// A unit of the backward kernel: query rows in tiles and groups, keys in blocks, and their packing,
// for each Highway target. Included once per target.
#if defined(RING_CPU_BACKWARD_UNIT_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef RING_CPU_BACKWARD_UNIT_INL_H
#undef RING_CPU_BACKWARD_UNIT_INL_H
#else
#define RING_CPU_BACKWARD_UNIT_INL_H
#endif

#include <hwy/highway.h>

#include "kernels/cpu/block_args.h"
#include "kernels/cpu/layout.h"
#include "kernels/cpu/micro_inl.h"
#include "kernels/cpu/pack_inl.h"
#include "kernels/cpu/tiles.h"

HWY_BEFORE_NAMESPACE();
namespace ring::cpu::HWY_NAMESPACE {
namespace {

// Query rows whose P and dS are kept at once: the sums over queries run over this many.
constexpr int kGroupRows = 96;
constexpr int kGroupTiles = kGroupRows / kTileRows;
// Keys per block: P and dS of a group and the panels of K and V stay in the second cache.
constexpr int kBlockKeys = static_cast<int>(kUnitKeyStep);
static_assert(kGroupRows % kTileRows == 0 && kBlockKeys % kOuterRows == 0);
static_assert(kBlockKeys % kPanel == 0 && kUnitKeys % kBlockKeys == 0);

// The scratch arrays of one unit; W = kTileRows, T = tiles, G = groups of kGroupRows rows.
struct Scratch {
  RowTile* tiles;              // (T)
  int32_t *before, *end;       // (T, W) each lane sees the keys k with before < k < end
  float *shift, *delta;        // (T, W) lse log2 e and delta of each lane
  float *q, *d_out;            // (T, step of dims, W)
  float* dq;                   // (T, dim_qk padded to panels, W)
  float *q_dims, *d_out_dims;  // (G, panel of dims, step of rows, kOuterWidth)
  float *k_rows, *v_rows;      // (panel of keys, step of dims, kPanel)
  float* k_dims;               // (panel of dims, step of keys, kPanel)
  float *dk, *dv;              // (key, dim padded to kOuterWidth)
  float *weights, *slopes;     // (key, kGroupRows) P and scale * dS
  uint16_t *weights_narrow, *slopes_narrow;  // the same in bf16, for PairProducts
  float* ones;                               // (W)
  float* rows;                               // (kMaxTileRows, kMaxHeadDim) widened rows
  float *zeros, *junk;  // (kMaxHeadDim) read from, written to, by lanes without a row
  int64_t bytes;
};

struct Unit {
  const BackwardArgs& args;
  const BackwardUnit& unit;
  int tiles;
  int depth;              // elements per step of a product: 1, or 2 for PairProducts
  int qk_steps, v_steps;  // steps over the head dims
  int dim_qk_panels, dim_qk_outer, dim_v_outer;  // dims padded to kPanel and kOuterWidth
  Scratch at;

  // Between panels of dims: of the rows of a group, of the keys of a block.
  int64_t group_stride() const { return int64_t{kGroupRows} / depth * kOuterWidth; }
  int64_t key_stride() const { return int64_t{kBlockKeys} / depth * kPanel; }
  // Between the dims of one group and the next, for dims padded to `outer`.
  int64_t dims_stride(int outer) const { return int64_t{kGroupRows} / depth * outer; }
};

// The arrays of a unit; with a null base only their size.
Scratch carve(std::byte* base, const Unit& u, int64_t tiles) {
  Carver carver(base);
  Scratch s;
  const int64_t lanes = tiles * kTileRows;
  const int64_t group_lanes = round_up(lanes, kGroupRows);
  s.tiles = carver.take<RowTile>(tiles);
  s.before = carver.take<int32_t>(lanes);
  s.end = carver.take<int32_t>(lanes);
  s.shift = carver.take<float>(lanes);
  s.delta = carver.take<float>(lanes);
  s.q = carver.take<float>(lanes * u.qk_steps);
  s.d_out = carver.take<float>(lanes * u.v_steps);
  s.dq = carver.take<float>(lanes * u.dim_qk_panels);
  s.q_dims = carver.take<float>(group_lanes / u.depth * u.dim_qk_outer);
  s.d_out_dims = carver.take<float>(group_lanes / u.depth * u.dim_v_outer);
  s.k_rows = carver.take<float>(int64_t{kBlockKeys} * u.qk_steps);
  s.v_rows = carver.take<float>(int64_t{kBlockKeys} * u.v_steps);
  s.k_dims = carver.take<float>(int64_t{kBlockKeys} / u.depth * u.dim_qk_panels);
  s.dk = carver.take<float>(int64_t{kBlockKeys} * u.dim_qk_outer);
  s.dv = carver.take<float>(int64_t{kBlockKeys} * u.dim_v_outer);
  s.weights = carver.take<float>(int64_t{kBlockKeys} * kGroupRows);
  s.slopes = carver.take<float>(int64_t{kBlockKeys} * kGroupRows);
  const int64_t narrow = u.depth == 2 ? int64_t{kBlockKeys} * kGroupRows : 0;
  s.weights_narrow = carver.take<uint16_t>(narrow);
  s.slopes_narrow = carver.take<uint16_t>(narrow);
  s.ones = carver.take<float>(kTileRows);
  s.rows = carver.take<float>(int64_t{kMaxTileRows} * kMaxHeadDim);
  s.zeros = carver.take<float>(kMaxHeadDim);
  s.junk = carver.take<float>(kMaxHeadDim);
  s.bytes = carver.used_bytes();
  return s;
}

void load_lane_scalars(const Unit& u, int t, int i, const RowPlace& place) {
  const BackwardArgs& args = u.args;
  const int64_t lane = int64_t{t} * kTileRows + i;
  const int64_t stat = place.row * args.in.stats.token + place.head * args.in.stats.head;
  const float lse = args.in.lse[stat];
  const KeySpan span = span_of(args.shape, args.spans, place.row);
  const bool empty = lse == kNegInf;  // no weight anywhere, whatever the span says
  u.at.before[lane] = empty ? 0 : span.begin - 1;
  u.at.end[lane] = empty ? 0 : span.end;
  u.at.shift[lane] = empty ? 0.0F : lse * kLog2e;
  u.at.delta[lane] = args.in.delta[stat];
}

// Packs the rows of tile `t` as dim panels beside those of its group.
void pack_group_dims(const Unit& u, int t, const float* const* rows, int dim, float* dims) {
  const auto outer = static_cast<int>(round_up(dim, kOuterWidth));
  const int64_t row_in_group = int64_t{t % kGroupTiles} * kTileRows;
  float* to =
      dims + int64_t{t / kGroupTiles} * u.dims_stride(outer) + row_in_group / u.depth * kOuterWidth;
  if (u.depth == 1) {
    for (int i = 0; i < kTileRows; ++i) {
      pack_dims(rows[i], dim, kOuterWidth, u.group_stride(), to + i * kOuterWidth);
    }
    return;
  }
  alignas(64) uint16_t halves[2][2 * kMaxHeadDim] = {};  // zeros from `dim` on
  for (int i = 0; i < kTileRows; i += 2) {
    for (int j = 0; j < 2; ++j) {
      std::memcpy(halves[j], rows[i + j], static_cast<size_t>(dim) * 2);
    }
    pair_rows(halves[0], halves[1], outer, kOuterWidth, u.group_stride(), to + i / 2 * kOuterWidth);
  }
}

// Packs one row tensor of tile `t`, `steps` numbers or pairs a row, transposed.
template <class RowOf>
void pack_tile(const Unit& u, int t, int steps, RowOf row_of, const float* (&rows)[kTileRows],
               float* lanes) {
  for (int i = 0; i < kTileRows; ++i) {
    rows[i] = i < u.at.tiles[t].rows ? row_of(i) : u.at.zeros;
  }
  pack_transposed(rows, kTileRows, steps, lanes, kTileRows);
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
  RowPlace place = place_of(shape, u.unit.rows.kv_head, tile.first);
  for (int i = 0; i < kTileRows; ++i, place = place.next(shape)) {
    u.at.before[lane + i] = u.at.end[lane + i] = 0;
    u.at.shift[lane + i] = u.at.delta[lane + i] = 0.0F;
    if (i >= tile.rows) continue;
    places[i] = place;
    load_lane_scalars(u, t, i, place);
  }
  const auto stored = [&](const ConstView& view, int dim) {
    return [&, dim](int i) {
      return head_rows(shape, view, places[i].head, dim, u.depth)
          .row(places[i].row, u.at.rows + int64_t{i} * kMaxHeadDim);
    };
  };
  const float* rows[kTileRows];
  pack_tile(u, t, u.qk_steps, stored(args.in.q, shape.dim_qk), rows, u.at.q + lane * u.qk_steps);
  pack_group_dims(u, t, rows, shape.dim_qk, u.at.q_dims);
  pack_tile(u, t, u.v_steps, stored(args.in.d_out, shape.dim_v), rows,
            u.at.d_out + lane * u.v_steps);
  pack_group_dims(u, t, rows, shape.dim_v, u.at.d_out_dims);
  float* dq = u.at.dq + lane * u.dim_qk_panels;
  pack_tile(
      u, t, shape.dim_qk, [&](int i) { return query_sums(args.out, places[i]); }, rows, dq);
  for (int i = shape.dim_qk * kTileRows; i < u.dim_qk_panels * kTileRows; ++i) dq[i] = 0.0F;
}

void store_tile(const Unit& u, int t) {
  const AttendShape& shape = u.args.shape;
  const RowTile& tile = u.at.tiles[t];
  float* rows[kTileRows];
  RowPlace place = place_of(shape, u.unit.rows.kv_head, tile.first);
  for (int i = 0; i < kTileRows; ++i, place = place.next(shape)) {
    rows[i] = i < tile.rows ? query_sums(u.args.out, place) : u.at.junk;
  }
  unpack_transposed(u.at.dq + int64_t{t} * kTileRows * u.dim_qk_panels, kTileRows,
                    static_cast<int>(round_up(tile.rows, 4)), shape.dim_qk, rows);
}

// Packs K and V of a block and fetches its sums.
void load_block(const Unit& u, int64_t first, int keys) {
  const BackwardArgs& args = u.args;
  const AttendShape& shape = args.shape;
  const int kv_head = u.unit.rows.kv_head;
  const HeadRows k = head_rows(shape, args.in.k, kv_head, shape.dim_qk, u.depth);
  const HeadRows v = head_rows(shape, args.in.v, kv_head, shape.dim_v, u.depth);
  pack_row_panels(k, first, keys, kPanel, u.at.zeros, u.at.rows, u.at.k_rows);
  pack_row_panels(v, first, keys, kPanel, u.at.zeros, u.at.rows, u.at.v_rows);
  pack_dim_panels(k, first, keys, static_cast<int>(round_up(keys, kPanel)), kPanel, u.key_stride(),
                  u.at.zeros, u.at.rows, u.at.k_dims);
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

}  // namespace
}  // namespace ring::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
