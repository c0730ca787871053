#include "kernels/backward_memory.h"

#include <vector>

#include "kernels/executor_storage.h"

namespace ring {
namespace {

constexpr Bytes kFloat = 4;

QuerySideBuffer query_side(const Problem& problem, Tokens rows, bool with_q) {
  const Bytes values = rows * problem.batch * problem.heads;
  return {with_q ? Pages(values * problem.head_dim * size_bytes(problem.dtype)) : Pages(),
          Pages(values * problem.head_dim_v * size_bytes(problem.dtype)),
          Pages(values * 2 * kFloat)};
}

GradientBuffer key_gradients(const Problem& problem, Tokens tokens) {
  const Bytes values = tokens * problem.batch * problem.kv_heads * kFloat;
  return {Pages(values * problem.head_dim), Pages(values * problem.head_dim_v)};
}

/// Rows [from, from + count) of a piece that has `row_bytes` a row.
Part rows_of(const Pages& pages, Bytes row_bytes, int64_t from, int64_t count) {
  return {pages.data() + from * row_bytes, count * row_bytes};
}

}  // namespace

BackwardMemory::BackwardMemory(const Problem& problem, const RankStorage& storage) {
  if (!has_backward(problem.pass)) return;
  home = query_side(problem, storage.query_tokens, false);
  for (int32_t i = 0; i < storage.query_buffers; ++i)
    received.push_back(query_side(problem, storage.query_buffer_tokens, true));
  d_keys = key_gradients(problem, storage.home_tokens);
  d_queries = Pages(problem.query_gradient_bytes(storage.query_tokens));
  for (int32_t i = 0; i < storage.gradient_buffers; ++i) {
    if (storage.gradients == Payload::kKeyGradients) {
      gradients.push_back(key_gradients(problem, storage.gradient_tokens));
    } else {
      gradients.push_back({Pages(problem.query_gradient_bytes(storage.gradient_tokens)), Pages()});
    }
  }
}

void BackwardMemory::fill(const Problem& problem, const TokenRanges& tokens,
                          const DataSource& data) {
  if (!has_backward(problem.pass)) return;
  for (const QuerySideBuffer& buffer : received) {
    buffer.q.touch();
    buffer.d_out.touch();
    buffer.stats.touch();
  }
  for (const GradientBuffer& buffer : gradients) {
    buffer.first.touch();
    buffer.second.touch();
  }
  home.d_out.touch();
  home.stats.touch();
  d_keys.first.touch();
  d_keys.second.touch();
  d_queries.touch();
  std::vector<float> values(static_cast<size_t>(problem.heads * problem.head_dim_v));
  std::byte* to = home.d_out.data();
  const Bytes step = problem.heads * problem.head_dim_v * size_bytes(problem.dtype);
  for (const AffineRange& range : tokens) {
    for (int64_t i = 0; i < range.count; ++i) {
      for (int64_t batch = 0; batch < problem.batch; ++batch, to += step) {
        data.fill(Tensor::kOutputGradient, batch, range.position(i), values);
        store_elements(problem.dtype, values, to);
      }
    }
  }
}

Bytes BackwardMemory::bytes() const {
  Bytes sum = home.d_out.bytes() + home.stats.bytes() + d_keys.first.bytes() +
              d_keys.second.bytes() + d_queries.bytes();
  for (const QuerySideBuffer& buffer : received)
    sum += buffer.q.bytes() + buffer.d_out.bytes() + buffer.stats.bytes();
  for (const GradientBuffer& buffer : gradients)
    sum += buffer.first.bytes() + buffer.second.bytes();
  return sum;
}

std::array<Part, kMaxParts> backward_parts(const RankMemory& memory, const Op& op) {
  const Problem& problem = memory.problem;
  const BackwardMemory& backward = memory.backward;
  const int64_t rows = op.q_end - op.q_begin, at = op.buffer_begin;
  const Bytes query_heads = problem.batch * problem.heads;
  const Bytes kv_heads = problem.batch * problem.kv_heads;
  if (op.payload == Payload::kQuerySide) {
    const bool is_home = op.buffer == kHomeBuffer;
    const QuerySideBuffer& buffer =
        is_home ? backward.home : backward.received[static_cast<size_t>(op.buffer)];
    const Bytes element = size_bytes(problem.dtype);
    return {
        {rows_of(is_home ? memory.q : buffer.q, query_heads * problem.head_dim * element, at, rows),
         rows_of(buffer.d_out, query_heads * problem.head_dim_v * element, at, rows),
         rows_of(buffer.stats, query_heads * 2 * kFloat, at, rows)}};
  }
  const GradientBuffer& buffer = backward.gradients[static_cast<size_t>(op.buffer)];
  if (op.payload == Payload::kQueryGradients)
    return {{rows_of(buffer.first, query_heads * problem.head_dim * kFloat, at, rows)}};
  const int64_t tokens = op.kv_end - op.kv_begin;
  return {{rows_of(buffer.first, kv_heads * problem.head_dim * kFloat, at, tokens),
           rows_of(buffer.second, kv_heads * problem.head_dim_v * kFloat, at, tokens)}};
}

}  // namespace ring
