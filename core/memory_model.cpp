#include "core/memory_model.h"

namespace ring {

Bytes backward_bytes(const Problem& problem, const RankStorage& storage) {
  if (!has_backward(problem.pass)) return 0;
  const int64_t rows = problem.batch * problem.heads * storage.query_tokens;
  const Bytes travelling = storage.gradients == Payload::kKeyGradients
                               ? problem.key_gradient_bytes(storage.gradient_tokens)
                               : problem.query_gradient_bytes(storage.gradient_tokens);
  return rows * (problem.head_dim_v * size_bytes(problem.dtype) + 8) +
         problem.query_gradient_bytes(storage.query_tokens) +
         problem.key_gradient_bytes(storage.home_tokens) + storage.gradient_buffers * travelling;
}

Bytes rank_bytes(const Problem& problem, const RankStorage& storage) {
  constexpr Bytes kFloat = 4;
  const int64_t rows = problem.batch * problem.heads * storage.query_tokens;
  const Bytes element = size_bytes(problem.dtype);
  return rows * (problem.head_dim + problem.head_dim_v) * element + rows * kFloat +
         problem.kv_bytes(storage.home_tokens) +
         storage.buffers * problem.kv_bytes(storage.buffer_tokens) +
         storage.states * rows * (problem.head_dim_v + 2) * kFloat +
         storage.query_buffers * problem.query_side_bytes(storage.query_buffer_tokens) +
         backward_bytes(problem, storage);
}

Bytes program_bytes(const RingProgram& program) {
  Bytes bytes = 0;
  for (const RankProgram& rank : program.rank_programs) {
    bytes += rank_bytes(program.problem, rank.storage);
  }
  return bytes;
}

}  // namespace ring
