// What the dispatched kernels receive: one call of attend, and its share of the rows.
#pragma once

#include "kernels/cpu/attend.h"

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

}  // namespace ring::cpu
