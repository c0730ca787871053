#include "kernels/cuda/shard_data.h"

#include <string>

#include "core/error.h"

namespace ring::cuda {

std::vector<std::byte> shard_values(const DataSource& data, Tensor tensor,
                                    const TokenRanges& tokens, const Problem& problem,
                                    int64_t heads, int64_t dim) {
  const Bytes step = heads * dim * size_bytes(problem.dtype);
  std::vector<std::byte> stored(static_cast<size_t>(token_count(tokens) * problem.batch * step));
  std::vector<float> values(static_cast<size_t>(heads * dim));
  std::byte* to = stored.data();
  for (const AffineRange& range : tokens) {
    for (int64_t i = 0; i < range.count; ++i) {
      for (int64_t batch = 0; batch < problem.batch; ++batch, to += step) {
        data.fill(tensor, batch, range.position(i), values);
        store_elements(problem.dtype, values, to);
      }
    }
  }
  return stored;
}

TokenPlace place_of(const Partition& partition, int64_t position) {
  for (int rank = 0; rank < partition.ranks(); ++rank) {
    const int64_t row = index_of(partition.shard(rank), position);
    if (row >= 0) return {rank, row};
  }
  throw_usage("no rank holds token " + std::to_string(position));
}

}  // namespace ring::cuda
