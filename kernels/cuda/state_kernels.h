// Kernels that pass once over attention states and outputs: finalize, merge, reset, convert.
//
// A thread handles 8 consecutive elements of a row, so that a warp moves whole 128-byte lines and
// every access takes 16 bytes; a warp owns its rows, since it changes what all of a row's threads
// read.
#pragma once

#include <cmath>

#include "kernels/cuda/params.h"
#include "kernels/simt/macros.h"
#include "kernels/simt/types.h"

namespace ring::cuda {

inline constexpr int kStateThreads = 128;

/// Rows that a block of kStateThreads threads handles; the head dim is a multiple of 8, at most
/// 256.
RING_BOTH int state_rows_of_block(int dim) {
  return kStateThreads / simt::kWarp * (simt::kWarp / (dim / 8));
}
/// Blocks: (rows, heads, batch).
inline simt::LaunchShape state_shape(int64_t rows, int heads, int batch, int dim) {
  const int at_once = state_rows_of_block(dim);
  return {static_cast<int>((rows + at_once - 1) / at_once), heads, batch, kStateThreads, 0};
}

/// The row and the first of the 8 elements of a thread.
struct StatePlace {
  int64_t row = 0;
  int element = 0;
  bool is_there = false;
};
template <class Lane>
RING_DEVICE StatePlace state_place(const Lane& lane, int rows, int dim) {
  const int of_row = dim / 8, at_once = simt::kWarp / of_row;
  const int in_warp = lane.lane() / of_row;
  const int64_t row =
      int64_t{lane.block_x()} * state_rows_of_block(dim) + lane.warp() * at_once + in_warp;
  return {row, lane.lane() % of_row * 8, in_warp < at_once && row < rows};
}

template <class Lane>
RING_DEVICE int64_t first_row_of(const Lane& lane, const StateView& state) {
  return lane.block_z() * state.batch_stride + lane.block_y() * state.head_stride;
}

struct Eight {
  simt::Float4 low, high;
};
template <class Lane>
RING_DEVICE Eight load_eight(Lane& lane, const float* from) {
  const auto* const at = reinterpret_cast<const simt::Float4*>(from);
  return {lane.load_global(at), lane.load_global(at + 1)};
}
template <class Lane>
RING_DEVICE void store_eight(Lane& lane, float* to, const Eight& value) {
  auto* const at = reinterpret_cast<simt::Float4*>(to);
  lane.store_global(at, value.low);
  lane.store_global(at + 1, value.high);
}
RING_DEVICE simt::Float4 blend(float a, const simt::Float4& x, float b, const simt::Float4& y) {
  return {a * x.x + b * y.x, a * x.y + b * y.y, a * x.z + b * y.z, a * x.w + b * y.w};
}
template <class Element, class Lane>
RING_DEVICE simt::Words4 pack_eight(Lane& lane, const Eight& v, float factor) {
  return {lane.pack(Element{}, v.low.x * factor, v.low.y * factor),
          lane.pack(Element{}, v.low.z * factor, v.low.w * factor),
          lane.pack(Element{}, v.high.x * factor, v.high.y * factor),
          lane.pack(Element{}, v.high.z * factor, v.high.w * factor)};
}

template <class Element, class Lane>
RING_DEVICE void finalize(Lane& lane, const FinalizeParams& p) {
  const StatePlace at = state_place(lane, p.rows, p.dim_v);
  if (!at.is_there) return;
  const int64_t row = first_row_of(lane, p.state) + at.row;
  const float l = lane.load_global(p.state.l + row);
  const Eight u = load_eight(lane, p.state.u + row * p.dim_v + at.element);
  uint16_t* const out = p.out.data + lane.block_z() * p.out.batch_stride +
                        at.row * p.out.token_stride + lane.block_y() * p.out.head_stride +
                        at.element;
  lane.store_global(reinterpret_cast<simt::Words4*>(out),
                    pack_eight<Element>(lane, u, l > 0 ? 1.0F / l : 0.0F));
  if (at.element != 0 || p.lse == nullptr) return;
  constexpr float kLn2 = 0.693147180559945309F;
  const float m = lane.load_global(p.state.m + row);
  const int64_t to =
      lane.block_z() * p.lse_batch_stride + lane.block_y() * p.lse_head_stride + at.row;
  lane.store_global(p.lse + to, l > 0 ? m * kLn2 + lane.log(l) : -INFINITY);
}

template <class Lane>
RING_DEVICE void merge_state(Lane& lane, const MergeStateParams& p) {
  const StatePlace at = state_place(lane, p.rows, p.dim_v);
  const int64_t to = first_row_of(lane, p.to) + at.row;
  const int64_t from = first_row_of(lane, p.from) + at.row;
  float m = 0, l = 0, other_m = 0, other_l = 0;
  if (at.is_there) {
    m = lane.load_global(p.to.m + to);
    l = lane.load_global(p.to.l + to);
    other_m = lane.load_global(p.from.m + from);
    other_l = lane.load_global(p.from.l + from);
  }
  lane.sync_warp();  // All of a row's threads have read what one of them is about to change.
  if (!at.is_there || other_l == 0) return;
  const float top = fmaxf(m, other_m);
  // An empty side is left out by its weight alone: 2^-inf = 0, and 2^0 = 1 keeps the other's bits.
  const float keep = lane.exp2(m - top), add = lane.exp2(other_m - top);
  float* const u = p.to.u + to * p.dim_v + at.element;
  const Eight own = load_eight(lane, u);
  const Eight other = load_eight(lane, p.from.u + from * p.dim_v + at.element);
  store_eight(lane, u,
              {blend(keep, own.low, add, other.low), blend(keep, own.high, add, other.high)});
  if (at.element != 0) return;
  lane.store_global(p.to.m + to, top);
  lane.store_global(p.to.l + to, keep * l + add * other_l);
}

template <class Lane>
RING_DEVICE void merge_output(Lane& lane, const MergeOutputParams& p) {
  const StatePlace at = state_place(lane, p.rows, p.dim_v);
  float lse = -INFINITY, other = -INFINITY;
  if (at.is_there) {
    lse = lane.load_global(p.to_lse + at.row);
    other = lane.load_global(p.from_lse + at.row);
  }
  lane.sync_warp();
  if (!at.is_there || other == -INFINITY) return;
  const float top = fmaxf(lse, other);
  const float keep = lane.exp2((lse - top) * kLog2e), add = lane.exp2((other - top) * kLog2e);
  const float sum = keep + add;
  float* const o = p.to_o + at.row * p.dim_v + at.element;
  const Eight own = load_eight(lane, o);
  const Eight from = load_eight(lane, p.from_o + at.row * p.dim_v + at.element);
  const float a = keep / sum, b = add / sum;
  store_eight(lane, o, {blend(a, own.low, b, from.low), blend(a, own.high, b, from.high)});
  if (at.element == 0) lane.store_global(p.to_lse + at.row, top + lane.log(sum));
}

template <class Element, class Lane>
RING_DEVICE void absorb_output(Lane& lane, const AbsorbParams& p) {
  const StatePlace at = state_place(lane, p.rows, p.dim_v);
  const int64_t to = first_row_of(lane, p.to) + at.row;
  const int64_t from = lane.block_z() * p.batch_stride + lane.block_y() * p.head_stride + at.row;
  float m = -INFINITY, l = 0, lse = -INFINITY;
  if (at.is_there) {
    lse = lane.load_global(p.lse + from);
    if (p.starts_state == 0) {
      m = lane.load_global(p.to.m + to);
      l = lane.load_global(p.to.l + to);
    }
  }
  lane.sync_warp();  // All of a row's threads have read what one of them is about to change.
  if (!at.is_there) return;
  const float other = lse * kLog2e, top = fmaxf(m, other), shift = top == -INFINITY ? 0.0F : top;
  const float keep = lane.exp2(m - shift), add = lane.exp2(other - shift);
  const auto words =
      lane.load_global(reinterpret_cast<const simt::Words4*>(p.out + from * p.dim_v + at.element));
  const simt::Float2 a = lane.unpack(Element{}, words.x), b = lane.unpack(Element{}, words.y);
  const simt::Float2 c = lane.unpack(Element{}, words.z), d = lane.unpack(Element{}, words.w);
  float* const u = p.to.u + to * p.dim_v + at.element;
  const Eight own = l > 0 ? load_eight(lane, u) : Eight{};
  store_eight(lane, u,
              {blend(keep, own.low, add, {a.x, a.y, b.x, b.y}),
               blend(keep, own.high, add, {c.x, c.y, d.x, d.y})});
  if (at.element != 0) return;
  lane.store_global(p.to.m + to, top);
  lane.store_global(p.to.l + to, keep * l + add);
}

/// One warp a row, 8 elements a lane.
template <class Element, class Lane>
RING_DEVICE void row_delta(Lane& lane, const DeltaParams& p) {
  const int64_t row = int64_t{lane.block_x()} * (kStateThreads / simt::kWarp) + lane.warp();
  if (row >= p.rows) return;
  const int element = lane.lane() * 8;
  float sum = 0;
  if (element < p.dim_v) {
    const auto load = [&](const ConstTensor& tensor) {
      const uint16_t* const from = tensor.data + lane.block_z() * tensor.batch_stride +
                                   row * tensor.token_stride + lane.block_y() * tensor.head_stride +
                                   element;
      return lane.load_global(reinterpret_cast<const simt::Words4*>(from));
    };
    const simt::Words4 a = load(p.out), b = load(p.d_out);
    const auto add = [&](uint32_t x, uint32_t y) {
      const simt::Float2 left = lane.unpack(Element{}, x), right = lane.unpack(Element{}, y);
      sum += left.x * right.x + left.y * right.y;
    };
    add(a.x, b.x);
    add(a.y, b.y);
    add(a.z, b.z);
    add(a.w, b.w);
  }
  RING_UNROLL
  for (int mask = simt::kWarp / 2; mask > 0; mask /= 2) sum += lane.shuffle_xor(sum, mask);
  if (lane.lane() != 0) return;
  const int64_t at =
      lane.block_z() * p.batch_stride + lane.block_y() * p.head_stride + row * p.row_stride;
  lane.store_global(p.delta + at, sum);
  if (p.lse == nullptr) return;
  const float* const lse =
      p.lse + lane.block_z() * p.lse_batch_stride + lane.block_y() * p.lse_head_stride + row;
  lane.store_global(p.lse_copy + at, lane.load_global(lse));
}
/// Blocks: (rows, heads, batch).
inline simt::LaunchShape delta_shape(int64_t rows, int heads, int batch) {
  constexpr int kAtOnce = kStateThreads / simt::kWarp;
  return {static_cast<int>((rows + kAtOnce - 1) / kAtOnce), heads, batch, kStateThreads, 0};
}

template <class Lane>
RING_DEVICE void reset_state(Lane& lane, const ResetStateParams& p) {
  const StatePlace at = state_place(lane, p.rows, p.dim_v);
  if (!at.is_there) return;
  const int64_t row = first_row_of(lane, p.state) + at.row;
  store_eight(lane, p.state.u + row * p.dim_v + at.element, Eight{});
  if (at.element != 0) return;
  lane.store_global(p.state.m + row, -INFINITY);
  lane.store_global(p.state.l + row, 0.0F);
}

template <class Lane>
RING_DEVICE void normalize_state(Lane& lane, const ResetStateParams& p) {
  const StatePlace at = state_place(lane, p.rows, p.dim_v);
  const int64_t row = first_row_of(lane, p.state) + at.row;
  const float l = at.is_there ? lane.load_global(p.state.l + row) : 0.0F;
  lane.sync_warp();  // All of a row's threads have read what one of them is about to change.
  if (!at.is_there || l == 0) return;
  float* const u = p.state.u + row * p.dim_v + at.element;
  const Eight sum = load_eight(lane, u);
  const float factor = 1.0F / l;
  store_eight(lane, u, {blend(factor, sum.low, 0.0F, {}), blend(factor, sum.high, 0.0F, {})});
  if (at.element != 0) return;
  const float m = lane.load_global(p.state.m + row);
  lane.store_global(p.state.m + row, m + lane.log(l) * kLog2e);
  lane.store_global(p.state.l + row, 1.0F);
}

template <class Lane>
RING_DEVICE void complete_state(Lane& lane, const ResetStateParams& p) {
  const StatePlace at = state_place(lane, p.rows, p.dim_v);
  if (!at.is_there || at.element != 0) return;
  const int64_t row = first_row_of(lane, p.state) + at.row;
  const float m = lane.load_global(p.state.m + row);
  lane.store_global(p.state.l + row, m == -INFINITY ? 0.0F : 1.0F);
}

/// Blocks: as many as it takes for 8 elements a thread.
inline simt::LaunchShape convert_shape(int64_t count) {
  constexpr int64_t kAtOnce = 8 * kStateThreads;
  return {static_cast<int>((count + kAtOnce - 1) / kAtOnce), 1, 1, kStateThreads, 0};
}

template <class Lane>
RING_DEVICE void add_all(Lane& lane, const AddParams& p) {
  const int64_t at = (int64_t{lane.block_x()} * kStateThreads + lane.thread()) * 8;
  if (at >= p.count * p.rows) return;
  const int64_t row = p.rows == 1 ? 0 : at / p.count;
  float* const to = p.to + row * p.to_stride + at - row * p.count;
  const float* const from = p.from + row * p.from_stride + at - row * p.count;
  const Eight own = load_eight(lane, to), other = load_eight(lane, from);
  store_eight(lane, to, {blend(1, own.low, 1, other.low), blend(1, own.high, 1, other.high)});
}

template <class Element, class Lane>
RING_DEVICE void narrow_all(Lane& lane, const ConvertParams& p) {
  const int64_t at = (int64_t{lane.block_x()} * kStateThreads + lane.thread()) * 8;
  if (at >= p.count) return;
  lane.store_global(reinterpret_cast<simt::Words4*>(p.narrow + at),
                    pack_eight<Element>(lane, load_eight(lane, p.wide + at), 1.0F));
}

template <class Element, class Lane>
RING_DEVICE void widen_all(Lane& lane, const ConvertParams& p) {
  const int64_t at = (int64_t{lane.block_x()} * kStateThreads + lane.thread()) * 8;
  if (at >= p.count) return;
  const auto words = lane.load_global(reinterpret_cast<const simt::Words4*>(p.narrow + at));
  const simt::Float2 a = lane.unpack(Element{}, words.x), b = lane.unpack(Element{}, words.y);
  const simt::Float2 c = lane.unpack(Element{}, words.z), d = lane.unpack(Element{}, words.w);
  store_eight(lane, p.wide + at, {{a.x, a.y, b.x, b.y}, {c.x, c.y, d.x, d.y}});
}

}  // namespace ring::cuda
