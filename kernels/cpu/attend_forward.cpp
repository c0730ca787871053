// The forward block kernel, compiled once per instruction set.
#include "kernels/cpu/block_args.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/layout.h"
#include "kernels/cpu/targets.h"
#include "kernels/cpu/tiles.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attend_forward.cpp"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#include <cmath>

#include "kernels/cpu/forward_pass_inl.h"
#include "kernels/cpu/micro_inl.h"

HWY_BEFORE_NAMESPACE();
namespace ring::cpu::HWY_NAMESPACE {
namespace {

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

// Scores of panels [lo, hi), hidden ones set to -inf. Apart, as add_values is: inlined, constants
// of the loops around it would take registers from the accumulators.
template <class Products, int kVecs, bool kMasked>
HWY_NOINLINE void score_range(const Pass& pass, const TileView& tile, int lo, int hi) {
  const Df df;
  const int steps = pass.qk_steps;
  constexpr int kPanels = kVecs * kPanel < 8 ? 2 : 1;
  int key = lo;
  for (; key + kPanels * kPanel <= hi; key += kPanels * kPanel) {
    score_panels<Products, kPanels, kVecs, !kMasked>(pass.at.k + int64_t{key} * steps, steps,
                                                     tile.q, pass.at.scores + key * kTileRows,
                                                     kTileRows, pass.at.peak);
  }
  for (; key < hi; key += kPanel) {
    score_panels<Products, 1, kVecs, !kMasked>(pass.at.k + int64_t{key} * steps, steps, tile.q,
                                               pass.at.scores + key * kTileRows, kTileRows,
                                               pass.at.peak);
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

// Turns scores [lo, hi) of one vector of lanes into weights; adds key i to sums[i % 4]. Pairs of
// weights take the place of scores that have been read.
template <class Products, bool kMasked>
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
      if constexpr (Products::kDepth == 1) hn::Store(p[i], df, at + i * kTileRows);
      sums[i] = hn::Add(sums[i], p[i]);
    }
    if constexpr (Products::kDepth == 2) {
      float* pairs = pass.at.scores + key / 2 * kTileRows + vec * kLanes;
      hn::Store(Products::pair(p[0], p[1]), df, pairs);
      hn::Store(Products::pair(p[2], p[3]), df, pairs + kTileRows);
    }
  }
}

template <class Products, int kVecs>
void weigh(const Pass& pass, const TileView& tile) {
  const Df df;
  const TileKeys& keys = tile.keys;
  for (int j = 0; j < kVecs; ++j) {
    Vf sums[4] = {hn::Zero(df), hn::Zero(df), hn::Zero(df), hn::Zero(df)};
    weigh_range<Products, true>(pass, tile, j, keys.lo, keys.core_lo, sums);
    weigh_range<Products, false>(pass, tile, j, keys.core_lo, keys.core_hi, sums);
    weigh_range<Products, true>(pass, tile, j, keys.core_hi, keys.hi, sums);
    const Vf sum = hn::Add(hn::Add(sums[0], sums[1]), hn::Add(sums[2], sums[3]));
    float* l = tile.l + j * kLanes;
    hn::Store(hn::MulAdd(hn::Load(df, l), hn::Load(df, pass.at.alpha + j * kLanes), sum), df, l);
  }
}

template <class Products, int kVecs, bool kFresh>
HWY_NOINLINE void add_values(const Pass& pass, const TileView& tile) {
  const int first = tile.keys.lo / Products::kDepth;
  const int steps = tile.keys.hi / Products::kDepth - first;
  const int64_t stride = pass.v_stride();
  const float* weights = pass.at.scores + first * kTileRows;
  const float* v = pass.at.v + int64_t{first} * kPanel;
  constexpr int kPanels = kVecs * kPanel < 8 ? 2 : 1;
  int panel = 0;
  const int panels = pass.dim_v_pad / kPanel;
  for (; panel + kPanels <= panels; panel += kPanels) {
    value_panels<Products, kPanels, kVecs, kFresh>(v + panel * stride, stride, weights, kTileRows,
                                                   steps, pass.at.alpha,
                                                   tile.u + panel * kPanel * kTileRows);
  }
  for (; panel < panels; ++panel) {
    value_panels<Products, 1, kVecs, kFresh>(v + panel * stride, stride, weights, kTileRows, steps,
                                             pass.at.alpha, tile.u + panel * kPanel * kTileRows);
  }
}

template <class Products, int kVecs>
void attend_tile(const Pass& pass, const TileView& tile) {
  const Df df;
  for (int j = 0; j < kVecs; ++j) {
    hn::Store(hn::Set(df, kNegInf), df, pass.at.peak + j * kLanes);
  }
  const TileKeys& keys = tile.keys;
  score_range<Products, kVecs, true>(pass, tile, keys.lo, keys.core_lo);
  score_range<Products, kVecs, false>(pass, tile, keys.core_lo, keys.core_hi);
  score_range<Products, kVecs, true>(pass, tile, keys.core_hi, keys.hi);
  raise_maximum<kVecs>(pass, tile);
  weigh<Products, kVecs>(pass, tile);
  if (tile.fresh) {
    add_values<Products, kVecs, true>(pass, tile);
  } else {
    add_values<Products, kVecs, false>(pass, tile);
  }
}

// A tile is packed before its first block of keys and stored after its last, near in time to the
// work on it.
template <class Products>
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
    tile.q = pass.at.q + lane * pass.qk_steps;
    tile.u = pass.at.u + lane * pass.dim_v_pad;
    tile.fresh = rows.fresh;
    const int vectors = (rows.rows + kLanes - 1) / kLanes;
    if (vectors == 1) {
      attend_tile<Products, 1>(pass, tile);
    } else if (vectors == 2) {
      attend_tile<Products, 2>(pass, tile);
    } else {
      attend_tile<Products, kVectors>(pass, tile);
    }
    rows.fresh = false;
    if (rows.hull_end <= block_begin + keys) store_tile(pass, t);
  }
}

template <class Products>
void run_pass(const ForwardArgs& args, const RowRange& rows, Workspace& workspace) {
  const AttendShape& shape = args.shape;
  const bool negative = shape.scale < 0.0F;
  Pass pass{.args = args,
            .kv_head = rows.kv_head,
            .tiles = 0,
            .depth = Products::kDepth,
            .qk_steps = steps_of(shape.dim_qk, Products::kDepth),
            .block = key_block(shape.dim_qk, shape.dim_v),
            .dim_v_pad = static_cast<int>(round_up(shape.dim_v, kPanel)),
            .scale = shape.scale == 0.0F ? 1.0F : std::fabs(shape.scale),
            .sign = shape.scale == 0.0F ? 0.0F : (negative ? -1.0F : 1.0F),
            .at = {}};
  const int64_t most = most_tiles(shape, rows.end - rows.begin, kTileRows);
  pass.at = carve(workspace.reserve(carve(nullptr, pass, most).bytes), pass, most);
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
  for (int64_t key = key_begin / pass.block * pass.block; key < key_end; key += pass.block) {
    attend_block<Products>(pass, key,
                           static_cast<int>(std::min<int64_t>(pass.block, shape.kv_rows - key)));
  }
}

template <class Products>
void attend_in_passes(const ForwardArgs& args, const RowRange& rows, Workspace& workspace) {
  const int64_t step = rows_per_pass(args.shape, workspace.caches());
  for (int64_t begin = rows.begin; begin < rows.end; begin += step) {
    run_pass<Products>(args, {rows.kv_head, begin, std::min(begin + step, rows.end)}, workspace);
  }
}

}  // namespace

void AttendRows(const ForwardArgs& args, const RowRange& rows, Workspace& workspace) {
  attend_in_passes<FloatProducts>(args, rows, workspace);
}

// The tensors are bf16.
void AttendRowsInPairs(const ForwardArgs& args, const RowRange& rows, Workspace& workspace) {
  attend_in_passes<PairProducts>(args, rows, workspace);
}

}  // namespace ring::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ring::cpu {

HWY_EXPORT(AttendRows);
HWY_EXPORT(AttendRowsInPairs);

void attend_rows(const ForwardArgs& args, const RowRange& rows, Workspace& workspace) {
  if (uses_bf16_products(args.shape.dtype)) {
    HWY_DYNAMIC_DISPATCH(AttendRowsInPairs)(args, rows, workspace);
  } else {
    HWY_DYNAMIC_DISPATCH(AttendRows)(args, rows, workspace);
  }
}

}  // namespace ring::cpu
#endif
