#include "core/payload.h"

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
    case Payload::kState:
      per_head = (problem.head_dim_v + 2) * kFloat;
      break;
    case Payload::kOutput:
    case Payload::kOutputGradient:
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

}  // namespace ring
