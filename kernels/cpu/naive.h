// Naive attention: all scores of a block are stored before they are used, as textbooks write it.
#pragma once

#include "kernels/cpu/attend.h"

namespace ring::cpu {

// One query head (shape.heads = shape.kv_heads = 1). Continues `state` like attend, by way of all
// q_rows x kv_rows scores, which are written to `scores` and read three times. It exists to be
// compared with; it takes memory with the square of the sequence.
void attend_naively(const AttendShape& shape, ConstView q, ConstView k, ConstView v,
                    const KeySpan* spans, AttendState state, float* scores);

}  // namespace ring::cpu
