// Rows of an attention state on their way out.
#pragma once

#include "kernels/cpu/attend.h"

namespace ring::cpu {

// out[i] = in[i] / divisor for i < n, rounded to nearest even in `dtype`.
void narrow_divided(DType dtype, const float* in, float divisor, int n, void* out);

}  // namespace ring::cpu
