// What the dispatched kernels receive: one call of attend, and its share of the rows.
#pragma once

#include "kernels/cpu/attend.h"
#include "kernels/cpu/attend_backward.h"

namespace ring::cpu {

struct ForwardArgs {
  AttendShape shape;
  ConstView q, k, v;
  const KeySpan* spans = nullptr;
  AttendState state;
};

// The rows of the query heads that share one KV head are stacked: index = local head * q_rows +
// row. A kernel call works on [begin, end) of them, so K and V tiles are packed once for all.
struct RowRange {
  int kv_head = 0;
  int64_t begin = 0;
  int64_t end = 0;
};

// Runs on the best instruction set allowed (kernels/cpu/isa.h).
void attend_rows(const ForwardArgs& args, const RowRange& rows, Workspace& workspace);

struct BackwardArgs {
  AttendShape shape;
  BackwardInput in;
  const KeySpan* spans = nullptr;
  BackwardOutput out;
};

// The arguments with all strides filled in.
inline BackwardArgs backward_args(const AttendShape& shape, const BackwardInput& in,
                                  const KeySpan* spans, const BackwardOutput& out) {
  BackwardArgs args{shape, in, spans, out};
  const auto fill = [](Strides& strides, int64_t tokens, int64_t dim) {
    if (strides.head == 0) strides = {dim, tokens * dim};
  };
  fill(args.in.stats, shape.q_rows, 1);
  fill(args.out.q, shape.q_rows, shape.dim_qk);
  fill(args.out.k, shape.kv_rows, shape.dim_qk);
  fill(args.out.v, shape.kv_rows, shape.dim_v);
  return args;
}

// One unit of the backward kernel: `rows` of one KV head against its keys [key_begin, key_end).
// Units of a head must run so that every unit comes after the one before it in rows and the one
// before it in keys; then every sum is made in the same order.
struct BackwardUnit {
  RowRange rows;
  int64_t key_begin = 0;
  int64_t key_end = 0;
};
inline constexpr int64_t kUnitRows = 576;
inline constexpr int64_t kUnitKeys = 384;
// Keys whose sums over queries are made at once; units begin at multiples of it.
inline constexpr int64_t kUnitKeyStep = 192;

void attend_backward_unit(const BackwardArgs& args, const BackwardUnit& unit, Workspace& workspace);

}  // namespace ring::cpu
