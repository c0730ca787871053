// Tokens of a program as the executor of GPUs needs them: their values, and who holds them.
#pragma once

#include <vector>

#include "core/ring_program.h"
#include "kernels/data.h"

namespace ring::cuda {

/// (token, batch, head, dim) of the tokens of a shard, as stored in the model dtype.
std::vector<std::byte> shard_values(const DataSource& data, Tensor tensor,
                                    const TokenRanges& tokens, const Problem& problem,
                                    int64_t heads, int64_t dim);

/// The rank that holds a token, and its row there. Throws Error(kUsage) for a position that no rank
/// holds.
struct TokenPlace {
  int rank = 0;
  int64_t row = 0;
};
TokenPlace place_of(const Partition& partition, int64_t position);

}  // namespace ring::cuda
