#include "core/memory_model.h"

#include "core/payload.h"

namespace ring {

Bytes backward_bytes(const Problem& problem, const RankStorage& storage) {
  if (!has_backward(problem.pass)) return 0;
  const int64_t rows = problem.batch * problem.heads * storage.query_tokens;
  const Bytes travelling = storage.gradients == Payload::kKeyGradients
                               ? problem.key_gradient_bytes(storage.gradient_tokens)
                               : problem.query_gradient_bytes(storage.gradient_tokens);
  const Tokens summed = storage.has_home_inputs ? storage.query_tokens : 0;
  return rows * (problem.head_dim_v * size_bytes(problem.dtype) + 8) +
         problem.query_gradient_bytes(summed) + problem.key_gradient_bytes(storage.home_tokens) +
         storage.gradient_buffers * travelling;
}

Bytes shaped_bytes(const Problem& problem, const RankStorage& storage) {
  constexpr Bytes kFloat = 4;
  Bytes sum = storage.scratch_bytes;
  for (const BufferShape& shape : storage.shaped_buffers) {
    if (shape.memory_of >= 0) continue;
    const HeadRange heads = query_heads(problem, shape.head_begin, shape.head_end);
    sum += payload_bytes(problem, shape.payload, heads, shape.tokens);
    if (shape.payload == Payload::kOutput)
      sum += problem.batch * heads.count() * shape.tokens * kFloat;
  }
  for (const StateShape& shape : storage.shaped_states) {
    sum += state_bytes(problem, query_heads(problem, shape.head_begin, shape.head_end), shape.rows);
  }
  return sum;
}

Bytes rank_bytes(const Problem& problem, const RankStorage& storage) {
  constexpr Bytes kFloat = 4;
  const HeadRange all{0, problem.heads};
  const Tokens rows = storage.query_tokens;
  Bytes sum = shaped_bytes(problem, storage) + payload_bytes(problem, Payload::kOutput, all, rows) +
              problem.batch * problem.heads * rows * kFloat +  // lse
              storage.states * state_bytes(problem, all, rows) +
              storage.buffers * problem.kv_bytes(storage.buffer_tokens);
  if (storage.has_home_inputs) {
    sum +=
        payload_bytes(problem, Payload::kQuery, all, rows) + problem.kv_bytes(storage.home_tokens);
  }
  return sum + storage.query_buffers * problem.query_side_bytes(storage.query_buffer_tokens) +
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
