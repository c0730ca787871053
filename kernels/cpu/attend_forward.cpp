// The forward block kernel, compiled once per instruction set.
#include "kernels/cpu/block_args.h"
#include "kernels/cpu/layout.h"
#include "kernels/cpu/targets.h"
#include "kernels/cpu/tiles.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attend_forward.cpp"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#include <cmath>

#include "kernels/cpu/micro_inl.h"
#include "kernels/cpu/pack_inl.h"

HWY_BEFORE_NAMESPACE();
namespace ring::cpu::HWY_NAMESPACE {
namespace {

// The scratch arrays of one pass, W = kTileRows, T = tiles of the pass.
struct Scratch {
  RowTile* tiles;               // (T)
  int32_t *before, *end;        // (T, W) each lane sees the keys k with before < k < end
  float *m, *l;                 // (T, W)
  float* q;                     // (T, dim_qk, W)
  float* u;                     // (T, dim_v padded, W)
  float* k;                     // (panel, dim_qk, kPanel) of one block of keys
  float* v;                     // (panel of dims, key, kPanel)
  float* scores;                // (key, W)
  float *peak, *alpha, *shift;  // (W)
  float* rows;                  // (kMaxTileRows, dim) widened rows
  float* junk;  // (dim) where lanes without a row are read from (zeros) or written to
  int64_t bytes;
};

struct Pass {
  const ForwardArgs& args;
  int kv_head;
  int tiles;
  int block;      // keys per block
  int dim_v_pad;  // dim_v rounded up to whole panels
  float scale;    // magnitude; the sign is folded into Q
  float sign;
  Scratch at;
};

Scratch carve(std::byte* base, const AttendShape& shape, int64_t tiles, int block, int dim_v_pad) {
  Carver carver(base);
  Scratch s;
  const int64_t lanes = tiles * kTileRows;
  s.tiles = carver.take<RowTile>(tiles);
  s.before = carver.take<int32_t>(lanes);
  s.end = carver.take<int32_t>(lanes);
  s.m = carver.take<float>(lanes);
  s.l = carver.take<float>(lanes);
  s.q = carver.take<float>(lanes * shape.dim_qk);
  s.u = carver.take<float>(lanes * dim_v_pad);
  s.k = carver.take<float>(int64_t{block} * shape.dim_qk);
  s.v = carver.take<float>(int64_t{block} * dim_v_pad);
  s.scores = carver.take<float>(int64_t{block} * kTileRows);
  s.peak = carver.take<float>(kTileRows);
  s.alpha = carver.take<float>(kTileRows);
  s.shift = carver.take<float>(kTileRows);
  s.rows = carver.take<float>(int64_t{kMaxTileRows} * kMaxHeadDim);
  s.junk = carver.take<float>(kMaxHeadDim + kPanel);
  s.bytes = carver.used_bytes();
  return s;
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
  for (int i = 0; i < kTileRows; ++i) {
    const int64_t lane = int64_t{t} * kTileRows + i;
    q_rows[i] = u_rows[i] = at.junk;
    at.before[lane] = at.end[lane] = 0;
    at.m[lane] = kNegInf;
    at.l[lane] = 0.0F;
    if (i >= tile.rows) continue;
    const RowPlace place = place_of(shape, pass.kv_head, tile.first + i);
    const KeySpan span = span_of(shape, args.spans, tile.first + i);
    at.before[lane] = span.begin - 1;
    at.end[lane] = span.end;
    at.m[lane] = args.state.m[place.index];
    at.l[lane] = args.state.l[place.index];
    tile.fresh = tile.fresh && at.l[lane] == 0.0F;
    u_rows[i] = args.state.u + place.index * shape.dim_v;
    const HeadRows q{shape.dtype, args.q.data, args.q.token_stride, place.head * args.q.head_stride,
                     shape.dim_qk};
    q.touch_rows(place.row, place.row + 1);
    q_rows[i] = q.row(place.row, at.rows + int64_t{i} * kMaxHeadDim);
  }
  float* q_tile = at.q + int64_t{t} * shape.dim_qk * kTileRows;
  pack_transposed(q_rows, kTileRows, shape.dim_qk, q_tile, kTileRows);
  if (pass.sign != 1.0F) {
    for (int64_t i = 0; i < int64_t{shape.dim_qk} * kTileRows; ++i) q_tile[i] *= pass.sign;
  }
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
  for (int i = 0; i < kTileRows; ++i) {
    u_rows[i] = at.junk;
    if (i >= tile.rows) continue;
    const int64_t lane = int64_t{t} * kTileRows + i;
    const RowPlace place = place_of(shape, pass.kv_head, tile.first + i);
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
  const ConstView& k = pass.args.k;
  const ConstView& v = pass.args.v;
  const HeadRows k_rows{shape.dtype, k.data, k.token_stride, pass.kv_head * k.head_stride,
                        shape.dim_qk};
  const HeadRows v_rows{shape.dtype, v.data, v.token_stride, pass.kv_head * v.head_stride,
                        shape.dim_v};
  pack_row_panels(k_rows, first, keys, kPanel, pass.at.junk, pass.at.rows, pass.at.k);
  pack_dim_panels(v_rows, first, keys, static_cast<int>(round_up(keys, kPanel)), kPanel,
                  int64_t{pass.block} * kPanel, pass.at.junk, pass.at.rows, pass.at.v);
}

// One block of keys as one tile sees it.
struct TileView {
  const int32_t *before, *end;
  int64_t block_begin;
  TileKeys keys;
  float *m, *l;
  const float* q;
  float* u;
  bool fresh;
};

hn::Mask<Df> visible(const TileView& tile, int vec, int key) {
  const Df df;
  const hn::RebindToSigned<Df> di;
  const auto at = hn::Set(di, static_cast<int32_t>(tile.block_begin + key));
  const auto before = hn::Load(di, tile.before + vec * kLanes);
  const auto end = hn::Load(di, tile.end + vec * kLanes);
  return hn::RebindMask(df, hn::And(hn::Lt(before, at), hn::Lt(at, end)));
}

// Scores of panels [lo, hi), hidden ones set to -inf.
template <int kVecs, bool kMasked>
void score_range(const Pass& pass, const TileView& tile, int lo, int hi) {
  const Df df;
  const int dim = pass.args.shape.dim_qk;
  constexpr int kPanels = kVecs * kPanel < 8 ? 2 : 1;
  int key = lo;
  for (; key + kPanels * kPanel <= hi; key += kPanels * kPanel) {
    score_panels<kPanels, kVecs, !kMasked>(pass.at.k + int64_t{key} * dim, dim, tile.q,
                                           pass.at.scores + key * kTileRows, kTileRows,
                                           pass.at.peak);
  }
  for (; key < hi; key += kPanel) {
    score_panels<1, kVecs, !kMasked>(pass.at.k + int64_t{key} * dim, dim, tile.q,
                                     pass.at.scores + key * kTileRows, kTileRows, pass.at.peak);
  }
  if (!kMasked) return;
  for (int j = 0; j < kVecs; ++j) {
    Vf top = hn::Load(df, pass.at.peak + j * kLanes);
    for (key = lo; key < hi; ++key) {
      float* at = pass.at.scores + key * kTileRows + j * kLanes;
      const Vf s = hn::IfThenElse(visible(tile, j, key), hn::Load(df, at), hn::Set(df, kNegInf));
      hn::Store(s, df, at);
      top = hn::Max(top, s);
    }
    hn::Store(top, df, pass.at.peak + j * kLanes);
  }
}

// Raises m to the block's peak; alpha = exp(m_old - m_new), shift = m_new log2 e.
template <int kVecs>
void raise_maximum(const Pass& pass, const TileView& tile) {
  const Df df;
  const Vf log2e = hn::Set(df, kLog2e);
  for (int j = 0; j < kVecs; ++j) {
    const Vf old = hn::Load(df, tile.m + j * kLanes);
    Vf top = hn::Mul(hn::Load(df, pass.at.peak + j * kLanes), hn::Set(df, pass.scale));
    top = hn::Max(old, hn::Min(top, hn::Set(df, 0x1p126F)));
    const auto is_empty = hn::Eq(top, hn::Set(df, kNegInf));
    const Vf shift = hn::IfThenElse(is_empty, hn::Zero(df), hn::Mul(top, log2e));
    // Subtracted before it is multiplied: a compiler that fuses a product with a difference would
    // make of equal maxima a factor that is not exactly 1, at every block that changes nothing.
    const Vf fall = hn::IfThenElse(is_empty, hn::Zero(df), hn::Sub(old, top));
    hn::Store(exp2_clamped(hn::Mul(fall, log2e)), df, pass.at.alpha + j * kLanes);
    hn::Store(shift, df, pass.at.shift + j * kLanes);
    hn::Store(top, df, tile.m + j * kLanes);
  }
}

// Turns scores [lo, hi) of one vector of lanes into weights; adds key i to sums[i % 4].
template <bool kMasked>
HWY_INLINE void weigh_range(const Pass& pass, const TileView& tile, int vec, int lo, int hi,
                            Vf (&sums)[4]) {
  const Df df;
  const Vf slope = hn::Set(df, pass.scale * kLog2e);
  const Vf shift = hn::Load(df, pass.at.shift + vec * kLanes);
  for (int key = lo; key < hi; key += 4) {
    float* at = pass.at.scores + key * kTileRows + vec * kLanes;
    Vf p[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) p[i] = hn::MulSub(hn::Load(df, at + i * kTileRows), slope, shift);
    exp2_clamped(p);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      if (kMasked) p[i] = hn::IfThenElseZero(visible(tile, vec, key + i), p[i]);
      hn::Store(p[i], df, at + i * kTileRows);
      sums[i] = hn::Add(sums[i], p[i]);
    }
  }
}

template <int kVecs>
void weigh(const Pass& pass, const TileView& tile) {
  const Df df;
  const TileKeys& keys = tile.keys;
  for (int j = 0; j < kVecs; ++j) {
    Vf sums[4] = {hn::Zero(df), hn::Zero(df), hn::Zero(df), hn::Zero(df)};
    weigh_range<true>(pass, tile, j, keys.lo, keys.core_lo, sums);
    weigh_range<false>(pass, tile, j, keys.core_lo, keys.core_hi, sums);
    weigh_range<true>(pass, tile, j, keys.core_hi, keys.hi, sums);
    const Vf sum = hn::Add(hn::Add(sums[0], sums[1]), hn::Add(sums[2], sums[3]));
    float* l = tile.l + j * kLanes;
    hn::Store(hn::MulAdd(hn::Load(df, l), hn::Load(df, pass.at.alpha + j * kLanes), sum), df, l);
  }
}

template <int kVecs, bool kFresh>
void add_values(const Pass& pass, const TileView& tile) {
  const int keys = tile.keys.hi - tile.keys.lo;
  const int64_t stride = int64_t{pass.block} * kPanel;
  const float* weights = pass.at.scores + tile.keys.lo * kTileRows;
  const float* v = pass.at.v + int64_t{tile.keys.lo} * kPanel;
  constexpr int kPanels = kVecs * kPanel < 8 ? 2 : 1;
  int panel = 0;
  const int panels = pass.dim_v_pad / kPanel;
  for (; panel + kPanels <= panels; panel += kPanels) {
    value_panels<kPanels, kVecs, kFresh>(v + panel * stride, stride, weights, kTileRows, keys,
                                         pass.at.alpha, tile.u + panel * kPanel * kTileRows);
  }
  for (; panel < panels; ++panel) {
    value_panels<1, kVecs, kFresh>(v + panel * stride, stride, weights, kTileRows, keys,
                                   pass.at.alpha, tile.u + panel * kPanel * kTileRows);
  }
}

template <int kVecs>
void attend_tile(const Pass& pass, const TileView& tile) {
  const Df df;
  for (int j = 0; j < kVecs; ++j) {
    hn::Store(hn::Set(df, kNegInf), df, pass.at.peak + j * kLanes);
  }
  const TileKeys& keys = tile.keys;
  score_range<kVecs, true>(pass, tile, keys.lo, keys.core_lo);
  score_range<kVecs, false>(pass, tile, keys.core_lo, keys.core_hi);
  score_range<kVecs, true>(pass, tile, keys.core_hi, keys.hi);
  raise_maximum<kVecs>(pass, tile);
  weigh<kVecs>(pass, tile);
  if (tile.fresh) {
    add_values<kVecs, true>(pass, tile);
  } else {
    add_values<kVecs, false>(pass, tile);
  }
}

// A tile is packed before its first block of keys and stored after its last, near in time to the
// work on it.
void attend_block(const Pass& pass, int64_t block_begin, int keys) {
  bool packed = false;
  for (int t = 0; t < pass.tiles; ++t) {
    RowTile& rows = pass.at.tiles[t];
    const int64_t lane = int64_t{t} * kTileRows;
    TileView tile;
    tile.keys = keys_in_block(rows, block_begin, keys, kPanel);
    if (tile.keys.empty()) continue;
    if (rows.hull_begin >= block_begin) load_tile(pass, t);
    if (!packed) {
      pack_block(pass, block_begin, keys);
      packed = true;
    }
    tile.before = pass.at.before + lane;
    tile.end = pass.at.end + lane;
    tile.block_begin = block_begin;
    tile.m = pass.at.m + lane;
    tile.l = pass.at.l + lane;
    tile.q = pass.at.q + lane * pass.args.shape.dim_qk;
    tile.u = pass.at.u + lane * pass.dim_v_pad;
    tile.fresh = rows.fresh;
    const int vectors = (rows.rows + kLanes - 1) / kLanes;
    if (vectors == 1) {
      attend_tile<1>(pass, tile);
    } else if (vectors == 2) {
      attend_tile<2>(pass, tile);
    } else {
      attend_tile<kVectors>(pass, tile);
    }
    rows.fresh = false;
    if (rows.hull_end <= block_begin + keys) store_tile(pass, t);
  }
}

void run_pass(const ForwardArgs& args, const RowRange& rows, Workspace& workspace) {
  const AttendShape& shape = args.shape;
  const int64_t most = most_tiles(shape, rows.end - rows.begin, kTileRows);
  const int block = key_block(shape.dim_qk, shape.dim_v);
  const int dim_v_pad = static_cast<int>(round_up(shape.dim_v, kPanel));
  const int64_t bytes = carve(nullptr, shape, most, block, dim_v_pad).bytes;
  const bool negative = shape.scale < 0.0F;
  Pass pass{.args = args,
            .kv_head = rows.kv_head,
            .tiles = 0,
            .block = block,
            .dim_v_pad = dim_v_pad,
            .scale = shape.scale == 0.0F ? 1.0F : std::fabs(shape.scale),
            .sign = shape.scale == 0.0F ? 0.0F : (negative ? -1.0F : 1.0F),
            .at = carve(workspace.reserve(bytes), shape, most, block, dim_v_pad)};
  std::memset(pass.at.junk, 0, sizeof(float) * (kMaxHeadDim + kPanel));
  int64_t key_begin = shape.kv_rows;
  int64_t key_end = 0;
  for (int64_t row = rows.begin; row < rows.end;) {
    RowTile& tile = pass.at.tiles[pass.tiles];
    tile = make_tile(shape, args.spans, row, rows.end, kTileRows);
    row += tile.rows;
    if (tile.hull_begin >= tile.hull_end) continue;  // Rows that see nothing keep their state.
    ++pass.tiles;
    key_begin = std::min<int64_t>(key_begin, tile.hull_begin);
    key_end = std::max<int64_t>(key_end, tile.hull_end);
  }
  for (int64_t key = key_begin / block * block; key < key_end; key += block) {
    attend_block(pass, key, static_cast<int>(std::min<int64_t>(block, shape.kv_rows - key)));
  }
}

}  // namespace

void AttendRows(const ForwardArgs& args, const RowRange& rows, Workspace& workspace) {
  const int64_t step = rows_per_pass(args.shape, workspace.caches());
  for (int64_t begin = rows.begin; begin < rows.end; begin += step) {
    run_pass(args, {rows.kv_head, begin, std::min(begin + step, rows.end)}, workspace);
  }
}

}  // namespace ring::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ring::cpu {

HWY_EXPORT(AttendRows);

void attend_rows(const ForwardArgs& args, const RowRange& rows, Workspace& workspace) {
  HWY_DYNAMIC_DISPATCH(AttendRows)(args, rows, workspace);
}

}  // namespace ring::cpu
#endif
