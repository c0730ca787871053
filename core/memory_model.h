// Memory model: what a rank of a program holds at once.
#pragma once

#include "core/problem.h"
#include "core/ring_program.h"

namespace ring {

/// Queries and output with lse, own keys and values, buffers in the model dtype, the attention
/// states (u, m, l) in fp32, and the scores of naive attention.
Bytes rank_bytes(const Problem& problem, const RankStorage& storage);
/// Of that, what the backward pass adds beside receive buffers of the query side: dO, (lse, delta),
/// gradients and gradient buffers; 0 without one.
Bytes backward_bytes(const Problem& problem, const RankStorage& storage);
/// Of that, buffers and states of other rows or heads than those of the shard, and scores.
Bytes shaped_bytes(const Problem& problem, const RankStorage& storage);
/// Of all ranks.
Bytes program_bytes(const RingProgram& program);

}  // namespace ring
