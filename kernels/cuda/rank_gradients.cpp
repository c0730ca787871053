#include "kernels/cuda/rank_gradients.h"

#include "core/error.h"
#include "kernels/cuda/shard_data.h"

namespace ring::cuda {
namespace {

constexpr Bytes kFloat = 4;

std::byte* as_bytes(float* values) { return reinterpret_cast<std::byte*>(values); }

/// Tokens [at, at + count) of a tensor with so many bytes a token.
Piece piece(std::byte* data, Bytes token_bytes, int64_t at, int64_t count) {
  return {data + at * token_bytes, count * token_bytes};
}

}  // namespace

RankGradients::RankGradients(const Problem& problem, const RankStorage& storage,
                             const TokenRanges& tokens, const DataSource& data,
                             DeviceRuntime& runtime, const Take& take)
    : problem_(problem),
      runtime_(runtime),
      rows_(storage.query_tokens),
      home_tokens_(storage.home_tokens) {
  home_ = query_side(rows_, false, take);
  for (int32_t i = 0; i < storage.query_buffers; ++i)
    received_.push_back(query_side(storage.query_buffer_tokens, true, take));
  d_keys_ = key_sums(home_tokens_, take);
  const auto query_sums = [&](Tokens rows) {
    return reinterpret_cast<float*>(take(problem_.query_gradient_bytes(rows)));
  };
  d_queries_ = query_sums(rows_);
  for (int32_t i = 0; i < storage.gradient_buffers; ++i) {
    sums_.push_back(storage.gradients == Payload::kKeyGradients
                        ? key_sums(storage.gradient_tokens, take)
                        : Sums{query_sums(storage.gradient_tokens), nullptr});
  }
  runtime_.upload(home_.d_out, shard_values(data, Tensor::kOutputGradient, tokens, problem_,
                                            problem_.heads, problem_.head_dim_v));
}

RankGradients::QuerySide RankGradients::query_side(Tokens rows, bool with_q,
                                                   const Take& take) const {
  const Bytes element = size_bytes(problem_.dtype), values = rows * query_width();
  QuerySide side;
  if (with_q) side.q = take(values * problem_.head_dim * element);
  side.d_out = take(values * problem_.head_dim_v * element);
  side.lse = reinterpret_cast<float*>(take(values * kFloat));
  side.delta = reinterpret_cast<float*>(take(values * kFloat));
  return side;
}

RankGradients::Sums RankGradients::key_sums(Tokens tokens, const Take& take) const {
  const Bytes values = tokens * key_width() * kFloat;
  return {reinterpret_cast<float*>(take(values * problem_.head_dim)),
          reinterpret_cast<float*>(take(values * problem_.head_dim_v))};
}

/// Where a backward op finds its operands, from the first row and key on.
struct RankGradients::Operands {
  ConstTensor q, k, v, d_out;
  const float *lse = nullptr, *delta = nullptr;
  float *dq = nullptr, *dk = nullptr, *dv = nullptr;
};

ConstTensor RankGradients::tensor(const std::byte* data, int64_t heads, int64_t dim,
                                  int64_t row) const {
  const int64_t token = problem_.batch * heads * dim;
  return {reinterpret_cast<const uint16_t*>(data) + row * token, heads * dim, token, dim};
}

RankGradients::Operands RankGradients::operands(const Op& op, const ForwardSide& forward) const {
  const bool keys_move = op.payload == Payload::kKeyValue, sums_home = op.state == kHomeBuffer;
  const bool own_queries = keys_move || op.buffer == kHomeBuffer;
  const QuerySide& side = own_queries ? home_ : received_[static_cast<size_t>(op.buffer)];
  const int64_t q_at = keys_move ? op.q_begin : op.buffer_begin;
  const int64_t kv_at = keys_move ? op.buffer_begin : op.kv_begin;
  const Sums& sums = sums_home ? d_keys_ : sums_[static_cast<size_t>(op.state)];
  const Sums& key_sums = keys_move ? sums : d_keys_;
  float* const query_sums = keys_move || sums_home ? d_queries_ : sums.first;
  Operands at;
  at.q = tensor(own_queries ? forward.q : side.q, problem_.heads, problem_.head_dim, q_at);
  at.d_out = tensor(side.d_out, problem_.heads, problem_.head_dim_v, q_at);
  at.k = tensor(forward.k, problem_.kv_heads, problem_.head_dim, kv_at);
  at.v = tensor(forward.v, problem_.kv_heads, problem_.head_dim_v, kv_at);
  at.lse = side.lse + q_at * query_width();
  at.delta = side.delta + q_at * query_width();
  at.dq = query_sums + q_at * query_width() * problem_.head_dim;
  at.dk = key_sums.first + kv_at * key_width() * problem_.head_dim;
  at.dv = key_sums.second + kv_at * key_width() * problem_.head_dim_v;
  return at;
}

std::vector<KernelCall> RankGradients::backward_calls(const Op& op, const ForwardSide& forward,
                                                      const KeyRange* spans) const {
  const Operands at = operands(op, forward);
  const int64_t rows = op.q_end - op.q_begin, keys = op.kv_end - op.kv_begin;
  std::vector<KernelCall> calls;
  if (op.starts_state && op.payload == Payload::kKeyValue) {
    calls.emplace_back(ClearCall{as_bytes(at.dk), keys * key_width() * problem_.head_dim * kFloat});
    calls.emplace_back(
        ClearCall{as_bytes(at.dv), keys * key_width() * problem_.head_dim_v * kFloat});
  } else if (op.starts_state) {
    calls.emplace_back(
        ClearCall{as_bytes(at.dq), rows * query_width() * problem_.head_dim * kFloat});
  }
  if (op.visible_pairs == 0) return calls;
  BackwardCall call;
  BackwardParams& p = call.params;
  p.q = at.q;
  p.k = at.k;
  p.v = at.v;
  p.d_out = at.d_out;
  p.lse = at.lse;
  p.delta = at.delta;
  p.dq = at.dq;
  p.dk = at.dk;
  p.dv = at.dv;
  p.row_batch_stride = problem_.heads;
  p.row_head_stride = 1;
  p.row_stride = query_width();
  p.key_batch_stride = problem_.kv_heads;
  p.key_head_stride = 1;
  p.key_stride = key_width();
  p.spans = spans;
  p.q_rows = static_cast<int32_t>(rows);
  p.kv_rows = static_cast<int32_t>(keys);
  p.group = static_cast<int32_t>(problem_.heads / problem_.kv_heads);
  p.scale = problem_.softmax_scale();
  call.dim_qk = static_cast<int>(problem_.head_dim);
  call.dim_v = static_cast<int>(problem_.head_dim_v);
  call.heads = static_cast<int>(problem_.heads);
  call.batch = static_cast<int>(problem_.batch);
  call.dtype = problem_.dtype;
  calls.emplace_back(call);
  return calls;
}

std::vector<KernelCall> RankGradients::delta_calls(const Op& op, const ForwardSide& forward) const {
  std::vector<KernelCall> calls;
  if (op.starts_state) {
    calls.emplace_back(ClearCall{as_bytes(d_queries_), problem_.query_gradient_bytes(rows_)});
    const Bytes keys = home_tokens_ * key_width() * kFloat;
    calls.emplace_back(ClearCall{as_bytes(d_keys_.first), keys * problem_.head_dim});
    calls.emplace_back(ClearCall{as_bytes(d_keys_.second), keys * problem_.head_dim_v});
  }
  DeltaCall call;
  DeltaParams& p = call.params;
  p.out = tensor(forward.out, problem_.heads, problem_.head_dim_v, 0);
  p.d_out = tensor(home_.d_out, problem_.heads, problem_.head_dim_v, 0);
  p.delta = home_.delta;
  p.batch_stride = problem_.heads;
  p.head_stride = 1;
  p.row_stride = query_width();
  p.rows = static_cast<int32_t>(rows_);
  p.dim_v = static_cast<int32_t>(problem_.head_dim_v);
  p.lse = forward.lse;
  p.lse_batch_stride = problem_.heads * rows_;
  p.lse_head_stride = rows_;
  p.lse_copy = home_.lse;
  call.heads = static_cast<int>(problem_.heads);
  call.batch = static_cast<int>(problem_.batch);
  call.dtype = problem_.dtype;
  calls.emplace_back(call);
  return calls;
}

std::vector<KernelCall> RankGradients::add_calls(const Op& op) const {
  const Sums& from = sums_[static_cast<size_t>(op.source_state)];
  const bool is_home = op.state == kHomeBuffer;
  if (op.payload == Payload::kQueryGradients) {
    float* const to = is_home ? d_queries_ : sums_[static_cast<size_t>(op.state)].first;
    const int64_t row = query_width() * problem_.head_dim;
    return {AddCall{{to + op.buffer_begin * row, from.first, (op.q_end - op.q_begin) * row}}};
  }
  const Sums& to = is_home ? d_keys_ : sums_[static_cast<size_t>(op.state)];
  const int64_t keys = op.kv_end - op.kv_begin;
  const int64_t k_token = key_width() * problem_.head_dim;
  const int64_t v_token = key_width() * problem_.head_dim_v;
  return {AddCall{{to.first + op.buffer_begin * k_token, from.first, keys * k_token}},
          AddCall{{to.second + op.buffer_begin * v_token, from.second, keys * v_token}}};
}

std::vector<KernelCall> RankGradients::calls(const Op& op, const ForwardSide& forward,
                                             const KeyRange* spans) const {
  if (op.kind == OpKind::kBackward) return backward_calls(op, forward, spans);
  if (op.kind == OpKind::kDelta) return delta_calls(op, forward);
  RING_ASSERT(op.kind == OpKind::kAdd);
  return add_calls(op);
}

Pieces RankGradients::pieces(const Op& op, std::byte* q) const {
  const int64_t rows = op.q_end - op.q_begin, at = op.buffer_begin;
  if (op.payload == Payload::kQuerySide) {
    const bool is_home = op.buffer == kHomeBuffer;
    const QuerySide& side = is_home ? home_ : received_[static_cast<size_t>(op.buffer)];
    const Bytes value = query_width() * size_bytes(problem_.dtype);
    return {{piece(is_home ? q : side.q, value * problem_.head_dim, at, rows),
             piece(side.d_out, value * problem_.head_dim_v, at, rows),
             piece(as_bytes(side.lse), query_width() * kFloat, at, rows),
             piece(as_bytes(side.delta), query_width() * kFloat, at, rows)}};
  }
  const Sums& sums = sums_[static_cast<size_t>(op.buffer)];
  if (op.payload == Payload::kQueryGradients)
    return {{piece(as_bytes(sums.first), query_width() * problem_.head_dim * kFloat, at, rows)}};
  const int64_t keys = op.kv_end - op.kv_begin;
  return {{piece(as_bytes(sums.first), key_width() * problem_.head_dim * kFloat, at, keys),
           piece(as_bytes(sums.second), key_width() * problem_.head_dim_v * kFloat, at, keys)}};
}

namespace {

void read(DeviceRuntime& runtime, const float* from, int64_t token, std::span<float> values) {
  const float* const at = from + token * static_cast<int64_t>(values.size());
  runtime.download(std::as_writable_bytes(values), reinterpret_cast<const std::byte*>(at));
}

}  // namespace

void RankGradients::read_queries(int64_t batch, int64_t row, std::span<float> values) const {
  read(runtime_, d_queries_, row * problem_.batch + batch, values);
}
void RankGradients::read_keys(int64_t batch, int64_t row, std::span<float> values) const {
  read(runtime_, d_keys_.first, row * problem_.batch + batch, values);
}
void RankGradients::read_values(int64_t batch, int64_t row, std::span<float> values) const {
  read(runtime_, d_keys_.second, row * problem_.batch + batch, values);
}

}  // namespace ring::cuda
