// Rows of an attention state on their way out.
#pragma once

#include "kernels/cpu/attend.h"

namespace ring::cpu {

// out[i] = in[i] / divisor for i < n, rounded to nearest even in `dtype`.
void narrow_divided(DType dtype, const float* in, float divisor, int n, void* out);

// Makes the state a partial result that can travel: u becomes u / l, m becomes lse = m + ln l, and
// l becomes 1. Rows that saw no key stay empty: u = 0, m = -inf, l = 0. Such a state still merges.
void normalize_state(AttendState state, int64_t rows, int dim_v);

}  // namespace ring::cpu
