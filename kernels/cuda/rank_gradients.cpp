#include "kernels/cuda/rank_gradients.h"

#include "kernels/cuda/shard_data.h"

namespace ring::cuda {
namespace {

constexpr Bytes kFloat = 4;

RankGradients::QuerySide query_side(const Problem& problem, Tokens rows, bool with_q,
                                    const RankGradients::Take& take) {
  const Bytes element = size_bytes(problem.dtype);
  const Bytes values = rows * problem.batch * problem.heads;
  RankGradients::QuerySide side;
  if (with_q) side.q = take(values * problem.head_dim * element);
  side.d_out = take(values * problem.head_dim_v * element);
  side.lse = reinterpret_cast<float*>(take(values * kFloat));
  side.delta = reinterpret_cast<float*>(take(values * kFloat));
  return side;
}

RankGradients::Sums key_sums(const Problem& problem, Tokens tokens,
                             const RankGradients::Take& take) {
  const Bytes values = tokens * problem.batch * problem.kv_heads * kFloat;
  return {reinterpret_cast<float*>(take(values * problem.head_dim)),
          reinterpret_cast<float*>(take(values * problem.head_dim_v))};
}

}  // namespace

RankGradients::RankGradients(const Problem& problem, const RankStorage& storage,
                             const TokenRanges& tokens, const DataSource& data,
                             DeviceRuntime& runtime, const Take& take)
    : home(query_side(problem, storage.query_tokens, false, take)),
      d_keys(key_sums(problem, storage.home_tokens, take)) {
  const auto query_sums = [&](Tokens rows) {
    return reinterpret_cast<float*>(take(problem.query_gradient_bytes(rows)));
  };
  for (int32_t i = 0; i < storage.query_buffers; ++i)
    received.push_back(query_side(problem, storage.query_buffer_tokens, true, take));
  if (storage.has_home_inputs) d_queries = query_sums(storage.query_tokens);
  for (int32_t i = 0; i < storage.gradient_buffers; ++i) {
    sums.push_back(storage.gradients == Payload::kKeyGradients
                       ? key_sums(problem, storage.gradient_tokens, take)
                       : Sums{query_sums(storage.gradient_tokens), nullptr});
  }
  runtime.upload(home.d_out, shard_values(data, Tensor::kOutputGradient, tokens, problem,
                                          problem.heads, problem.head_dim_v));
}

}  // namespace ring::cuda
