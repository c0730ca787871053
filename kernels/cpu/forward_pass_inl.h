// A pass of the forward kernel: query rows in tiles, keys in blocks, and their packing, for each
// Highway target. Included once per target.
#if defined(RING_CPU_FORWARD_PASS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef RING_CPU_FORWARD_PASS_INL_H
#undef RING_CPU_FORWARD_PASS_INL_H
#else
#define RING_CPU_FORWARD_PASS_INL_H
#endif

#include <hwy/highway.h>

#include <bit>

#include "kernels/cpu/block_args.h"
#include "kernels/cpu/layout.h"
#include "kernels/cpu/micro_inl.h"
#include "kernels/cpu/pack_inl.h"
#include "kernels/cpu/tiles.h"

HWY_BEFORE_NAMESPACE();
namespace ring::cpu::HWY_NAMESPACE {
namespace {

// The scratch arrays of one pass, W = kTileRows, T = tiles of the pass.
struct Scratch {
  RowTile* tiles;               // (T)
  int32_t *before, *end;        // (T, W) each lane sees the keys k with before < k < end
  float *m, *l;                 // (T, W)
  float* q;                     // (T, step, W)
  float* u;                     // (T, dim_v padded, W)
  float* k;                     // (panel, step, kPanel) of one block of keys
  float* v;                     // (panel of dims, step, kPanel)
  float* scores;                // (key, W), then weights (step, W) in the same place
  float *peak, *alpha, *shift;  // (W)
  float* rows;                  // (kMaxTileRows, dim) widened rows
  float* junk;  // (dim) where lanes without a row are read from (zeros) or written to
  int64_t bytes;
};

struct Pass {
  const ForwardArgs& args;
  int kv_head;
  int tiles;
  int depth;      // elements per step of a product: 1, or 2 for PairProducts
  int qk_steps;   // steps over dim_qk
  int block;      // keys per block
  int dim_v_pad;  // dim_v rounded up to whole panels
  float scale;    // magnitude; the sign is folded into Q
  float sign;
  Scratch at;

  int64_t v_stride() const { return int64_t{block} / depth * kPanel; }  // between panels
};

// The arrays of a pass; with a null base only their size.
Scratch carve(std::byte* base, const Pass& pass, int64_t tiles) {
  Carver carver(base);
  Scratch s;
  const int64_t lanes = tiles * kTileRows;
  s.tiles = carver.take<RowTile>(tiles);
  s.before = carver.take<int32_t>(lanes);
  s.end = carver.take<int32_t>(lanes);
  s.m = carver.take<float>(lanes);
  s.l = carver.take<float>(lanes);
  s.q = carver.take<float>(lanes * pass.qk_steps);
  s.u = carver.take<float>(lanes * pass.dim_v_pad);
  s.k = carver.take<float>(int64_t{pass.block} * pass.qk_steps);
  s.v = carver.take<float>(pass.dim_v_pad / kPanel * pass.v_stride());
  s.scores = carver.take<float>(int64_t{pass.block} * kTileRows);
  s.peak = carver.take<float>(kTileRows);
  s.alpha = carver.take<float>(kTileRows);
  s.shift = carver.take<float>(kTileRows);
  s.rows = carver.take<float>(int64_t{kMaxTileRows} * kMaxHeadDim);
  s.junk = carver.take<float>(kMaxHeadDim + kPanel);
  s.bytes = carver.used_bytes();
  return s;
}

// q_tile *= sign, which is 1, -1 or 0.
void apply_sign(const Pass& pass, float* q_tile) {
  const int64_t count = int64_t{pass.qk_steps} * kTileRows;
  if (pass.sign == 0.0F) std::fill_n(q_tile, count, 0.0F);
  if (pass.sign != -1.0F) return;
  const uint32_t flip = pass.depth == 2 ? 0x80008000U : 0x80000000U;
  for (int64_t i = 0; i < count; ++i) {
    q_tile[i] = std::bit_cast<float>(std::bit_cast<uint32_t>(q_tile[i]) ^ flip);
  }
}

// Packs Q, the state and the spans of tile `t`. Lanes beyond its rows hold zeros and see nothing.
void load_tile(const Pass& pass, int t) {
  const ForwardArgs& args = pass.args;
  const AttendShape& shape = args.shape;
  const Scratch& at = pass.at;
  RowTile& tile = at.tiles[t];
  tile.fresh = true;
  const float* q_rows[kTileRows];
  const float* u_rows[kTileRows];
  RowPlace place = place_of(shape, pass.kv_head, tile.first);
  for (int i = 0; i < kTileRows; ++i, place = place.next(shape)) {
    const int64_t lane = int64_t{t} * kTileRows + i;
    q_rows[i] = u_rows[i] = at.junk;
    at.before[lane] = at.end[lane] = 0;
    at.m[lane] = kNegInf;
    at.l[lane] = 0.0F;
    if (i >= tile.rows) continue;
    const KeySpan span = span_of(shape, args.spans, place.row);
    at.before[lane] = span.begin - 1;
    at.end[lane] = span.end;
    at.m[lane] = args.state.m[place.index];
    at.l[lane] = args.state.l[place.index];
    tile.fresh = tile.fresh && at.l[lane] == 0.0F;
    u_rows[i] = args.state.u + place.index * shape.dim_v;
    const HeadRows q = head_rows(shape, args.q, place.head, shape.dim_qk, pass.depth);
    q.touch_rows(place.row, place.row + 1);
    q_rows[i] = q.row(place.row, at.rows + int64_t{i} * kMaxHeadDim);
  }
  float* q_tile = at.q + int64_t{t} * pass.qk_steps * kTileRows;
  pack_transposed(q_rows, kTileRows, pass.qk_steps, q_tile, kTileRows);
  apply_sign(pass, q_tile);
  if (tile.fresh) return;  // The first block of keys writes the sums.
  float* u_tile = at.u + int64_t{t} * pass.dim_v_pad * kTileRows;
  for (int i = 0; i < tile.rows; ++i) touch(u_rows[i], int64_t{shape.dim_v} * 4);
  pack_transposed(u_rows, kTileRows, shape.dim_v, u_tile, kTileRows);
  for (int64_t i = int64_t{shape.dim_v} * kTileRows; i < int64_t{pass.dim_v_pad} * kTileRows; ++i) {
    u_tile[i] = 0.0F;
  }
}

void store_tile(const Pass& pass, int t) {
  const ForwardArgs& args = pass.args;
  const AttendShape& shape = args.shape;
  const Scratch& at = pass.at;
  const RowTile& tile = at.tiles[t];
  float* u_rows[kTileRows];
  RowPlace place = place_of(shape, pass.kv_head, tile.first);
  for (int i = 0; i < kTileRows; ++i, place = place.next(shape)) {
    u_rows[i] = at.junk;
    if (i >= tile.rows) continue;
    const int64_t lane = int64_t{t} * kTileRows + i;
    args.state.m[place.index] = at.m[lane];
    args.state.l[place.index] = at.l[lane];
    u_rows[i] = args.state.u + place.index * shape.dim_v;
  }
  const int lanes = static_cast<int>(round_up(tile.rows, 4));
  unpack_transposed(at.u + int64_t{t} * pass.dim_v_pad * kTileRows, kTileRows, lanes, shape.dim_v,
                    u_rows);
}

// Packs K as row panels and V as dim panels; keys and dims past the last are zeros.
void pack_block(const Pass& pass, int64_t first, int keys) {
  const AttendShape& shape = pass.args.shape;
  const Scratch& at = pass.at;
  const HeadRows k = head_rows(shape, pass.args.k, pass.kv_head, shape.dim_qk, pass.depth);
  const HeadRows v = head_rows(shape, pass.args.v, pass.kv_head, shape.dim_v, pass.depth);
  pack_row_panels(k, first, keys, kPanel, at.junk, at.rows, at.k);
  pack_dim_panels(v, first, keys, static_cast<int>(round_up(keys, kPanel)), kPanel, pass.v_stride(),
                  at.junk, at.rows, at.v);
}

}  // namespace
}  // namespace ring::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
