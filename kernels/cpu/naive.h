// Naive attention: all scores of a block are stored before they are used, as textbooks write it.
#pragma once

#include "kernels/cpu/attend_backward.h"

namespace ring::cpu {

// One query head (shape.heads = shape.kv_heads = 1). Continues `state` like attend, by way of all
// q_rows x kv_rows scores, which are written to `scores` and read three times. It exists to be
// compared with; it takes memory with the square of the sequence.
void attend_naively(const AttendShape& shape, ConstView q, ConstView k, ConstView v,
                    const KeySpan* spans, AttendState state, float* scores);

// Its backward pass, as attend_backward for one query head: `scores` has room for twice q_rows x
// kv_rows values, the weights and the gradients of the scores. lse and delta lie `stats.token`
// elements apart. Adds to the sums.
void attend_backward_naively(const AttendShape& shape, const BackwardInput& input,
                             const KeySpan* spans, const BackwardOutput& output, float* scores);

}  // namespace ring::cpu
