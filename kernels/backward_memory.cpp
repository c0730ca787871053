#include "kernels/backward_memory.h"

#include <vector>

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

}  // namespace

BackwardMemory::BackwardMemory(const Problem& problem, const RankStorage& storage) {
  if (!has_backward(problem.pass)) return;
  home = query_side(problem, storage.query_tokens, false);
  for (int32_t i = 0; i < storage.query_buffers; ++i)
    received.push_back(query_side(problem, storage.query_buffer_tokens, true));
  d_keys = key_gradients(problem, storage.home_tokens);
  if (storage.has_home_inputs)
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

}  // namespace ring
