#include "core/payload.h"

#include <algorithm>

namespace ring {
namespace {

constexpr Bytes kFloat = 4;

}  // namespace

HeadRange query_heads(const Problem& problem, int32_t head_begin, int32_t head_end) {
  if (head_begin == 0 && head_end == 0) return {0, problem.heads};
  return {head_begin, head_end};
}

HeadRange kv_heads_of(const Problem& problem, HeadRange query_heads) {
  const int64_t group = problem.heads / problem.kv_heads;
  return {query_heads.begin / group, (query_heads.end + group - 1) / group};
}

HeadRange heads_in(const Problem& problem, Payload payload, HeadRange query_heads) {
  const bool has_kv_heads = payload == Payload::kKeyValue || payload == Payload::kKeyGradients;
  return has_kv_heads ? kv_heads_of(problem, query_heads) : query_heads;
}

Bytes payload_bytes(const Problem& problem, Payload payload, HeadRange query_heads, Tokens rows) {
  const int64_t heads = heads_in(problem, payload, query_heads).count();
  const Bytes element = size_bytes(problem.dtype);
  Bytes per_head = 0;
  switch (payload) {
    case Payload::kKeyValue:
      per_head = (problem.head_dim + problem.head_dim_v) * element;
      break;
    case Payload::kQuery:
      per_head = problem.head_dim * element;
      break;
    case Payload::kPartial:
      per_head = (problem.head_dim_v + 1) * kFloat;
      break;
    case Payload::kOutput:
      per_head = problem.head_dim_v * element;
      break;
    case Payload::kQuerySide:
      per_head = (problem.head_dim + problem.head_dim_v) * element + 2 * kFloat;
      break;
    case Payload::kKeyGradients:
      per_head = (problem.head_dim + problem.head_dim_v) * kFloat;
      break;
    case Payload::kQueryGradients:
      per_head = problem.head_dim * kFloat;
      break;
  }
  return problem.batch * rows * heads * per_head;
}

Bytes state_bytes(const Problem& problem, HeadRange query_heads, Tokens rows) {
  return problem.batch * rows * query_heads.count() * (problem.head_dim_v + 2) * kFloat;
}

Bytes storage_bytes(const Problem& problem, const RankStorage& storage) {
  const HeadRange all{0, problem.heads};
  const Tokens rows = storage.query_tokens;
  Bytes sum = storage.scratch_bytes + payload_bytes(problem, Payload::kOutput, all, rows) +
              problem.batch * problem.heads * rows * kFloat +  // lse
              storage.states * state_bytes(problem, all, rows) +
              storage.buffers * problem.kv_bytes(storage.buffer_tokens);
  if (storage.has_home_inputs) {
    sum +=
        payload_bytes(problem, Payload::kQuery, all, rows) + problem.kv_bytes(storage.home_tokens);
  }
  for (const BufferShape& shape : storage.shaped_buffers) {
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

}  // namespace ring
