#include "core/memory_model.h"

namespace ring {

Bytes rank_bytes(const Problem& problem, const RankStorage& storage) {
  constexpr Bytes kFloat = 4;
  const int64_t rows = problem.batch * problem.heads * storage.query_tokens;
  const Bytes element = size_bytes(problem.dtype);
  return rows * (problem.head_dim + problem.head_dim_v) * element + rows * kFloat +
         problem.kv_bytes(storage.home_tokens) +
         storage.buffers * problem.kv_bytes(storage.buffer_tokens) +
         storage.states * rows * (problem.head_dim_v + 2) * kFloat;
}

Bytes program_bytes(const RingProgram& program) {
  Bytes bytes = 0;
  for (const RankProgram& rank : program.rank_programs) {
    bytes += rank_bytes(program.problem, rank.storage);
  }
  return bytes;
}

}  // namespace ring
