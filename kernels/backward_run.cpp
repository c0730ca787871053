#include "kernels/backward_run.h"

#include <cstring>

namespace ring {
namespace {

void set_to_zero(float* values, int64_t count) {
  if (count > 0) std::memset(values, 0, static_cast<size_t>(count) * sizeof(float));
}

void add_values(float* to, const float* from, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] += from[i];
}

/// A tensor (token, batch, head, dim) from token `at` on, of one batch element.
struct TokenTensor {
  std::byte* data;
  int64_t batch, heads, dim;

  cpu::ConstView view(int64_t at, int64_t of_batch, Bytes element) const {
    return {data + (at * batch + of_batch) * heads * dim * element, batch * heads * dim, dim};
  }
  float* sums(int64_t at, int64_t of_batch) const {
    return reinterpret_cast<float*>(data) + (at * batch + of_batch) * heads * dim;
  }
  cpu::Strides strides() const { return {batch * heads * dim, dim}; }
  /// Elements of one token.
  int64_t token() const { return batch * heads * dim; }
};

/// Where a backward op finds its operands.
struct Operands {
  TokenTensor q, d_out, k, v, dq, dk, dv;
  const float* stats;
  int64_t q_at, kv_at;    ///< First row and key there.
  int64_t dq_at, dkv_at;  ///< And in the gradients.
};

Operands operands_of(const RankMemory& memory, const Op& op) {
  const Problem& p = memory.problem;
  const BackwardMemory& b = memory.backward;
  const bool is_home = op.buffer == kHomeBuffer, sums_home = op.state == kHomeBuffer;
  const bool keys_move = op.payload == Payload::kKeyValue;
  const KvBuffer& kv = keys_move ? memory.buffer(op.buffer) : memory.home;
  const bool own_queries = keys_move || is_home;
  const QuerySideBuffer& side = own_queries ? b.home : b.received[static_cast<size_t>(op.buffer)];
  const Pages& q = own_queries ? memory.q : side.q;
  const GradientBuffer& sums = sums_home ? b.d_keys : b.gradients[static_cast<size_t>(op.state)];
  const GradientBuffer& key_sums = keys_move ? sums : b.d_keys;
  const Pages& query_sums = keys_move || sums_home ? b.d_queries : sums.first;
  return {.q = {q.data(), p.batch, p.heads, p.head_dim},
          .d_out = {side.d_out.data(), p.batch, p.heads, p.head_dim_v},
          .k = {kv.k.data(), p.batch, p.kv_heads, p.head_dim},
          .v = {kv.v.data(), p.batch, p.kv_heads, p.head_dim_v},
          .dq = {query_sums.data(), p.batch, p.heads, p.head_dim},
          .dk = {key_sums.first.data(), p.batch, p.kv_heads, p.head_dim},
          .dv = {key_sums.second.data(), p.batch, p.kv_heads, p.head_dim_v},
          .stats = side.stats.as<float>(),
          .q_at = keys_move ? op.q_begin : op.buffer_begin,
          .kv_at = keys_move ? op.buffer_begin : op.kv_begin,
          .dq_at = keys_move ? op.q_begin : op.buffer_begin,
          .dkv_at = keys_move ? op.buffer_begin : op.kv_begin};
}

/// Sets the gradients of the travelling tokens to zero.
void reset_sums(const Operands& at, const Op& op) {
  if (op.payload == Payload::kKeyValue) {
    const int64_t keys = op.kv_end - op.kv_begin;
    set_to_zero(at.dk.sums(at.dkv_at, 0), keys * at.dk.token());
    set_to_zero(at.dv.sums(at.dkv_at, 0), keys * at.dv.token());
  } else {
    set_to_zero(at.dq.sums(at.dq_at, 0), (op.q_end - op.q_begin) * at.dq.token());
  }
}

}  // namespace

cpu::AttendShape backward_shape(const Problem& problem, const Op& op) {
  cpu::AttendShape shape;
  shape.q_rows = op.q_end - op.q_begin;
  shape.kv_rows = op.kv_end - op.kv_begin;
  shape.heads = static_cast<int>(problem.heads);
  shape.kv_heads = static_cast<int>(problem.kv_heads);
  shape.dim_qk = static_cast<int>(problem.head_dim);
  shape.dim_v = static_cast<int>(problem.head_dim_v);
  shape.dtype = problem.dtype;
  shape.scale = problem.softmax_scale();
  return shape;
}

void run_backward(RankMemory& memory, const Op& op, const cpu::KeySpan* spans,
                  cpu::Workspace& workspace) {
  const Problem& problem = memory.problem;
  const Operands at = operands_of(memory, op);
  if (op.starts_state) reset_sums(at, op);
  if (op.visible_pairs == 0) return;
  const cpu::AttendShape shape = backward_shape(problem, op);
  const Bytes element = size_bytes(problem.dtype);
  const cpu::Strides stats{2 * problem.batch * problem.heads, 2};
  for (int64_t batch = 0; batch < problem.batch; ++batch) {
    const float* const row_stats = at.stats + (at.q_at * problem.batch + batch) * problem.heads * 2;
    const cpu::BackwardInput input{.q = at.q.view(at.q_at, batch, element),
                                   .k = at.k.view(at.kv_at, batch, element),
                                   .v = at.v.view(at.kv_at, batch, element),
                                   .d_out = at.d_out.view(at.q_at, batch, element),
                                   .lse = row_stats,
                                   .delta = row_stats + 1,
                                   .stats = stats};
    const cpu::BackwardOutput output{.dq = at.dq.sums(at.dq_at, batch),
                                     .dk = at.dk.sums(at.dkv_at, batch),
                                     .dv = at.dv.sums(at.dkv_at, batch),
                                     .q = at.dq.strides(),
                                     .k = at.dk.strides(),
                                     .v = at.dv.strides()};
    cpu::attend_backward(shape, input, spans, output, workspace);
  }
}

void run_delta(RankMemory& memory, const Op& op) {
  const Problem& problem = memory.problem;
  BackwardMemory& backward = memory.backward;
  if (op.starts_state) {
    set_to_zero(backward.d_queries.as<float>(), backward.d_queries.bytes() / 4);
    set_to_zero(backward.d_keys.first.as<float>(), backward.d_keys.first.bytes() / 4);
    set_to_zero(backward.d_keys.second.as<float>(), backward.d_keys.second.bytes() / 4);
  }
  cpu::AttendShape shape = backward_shape(problem, op);
  shape.kv_rows = 0;
  const Bytes element = size_bytes(problem.dtype);
  const TokenTensor out{memory.out.data(), problem.batch, problem.heads, problem.head_dim_v};
  const TokenTensor d_out{backward.home.d_out.data(), problem.batch, problem.heads,
                          problem.head_dim_v};
  const int64_t step = 2 * problem.batch * problem.heads;
  for (int64_t batch = 0; batch < problem.batch; ++batch) {
    float* const stats = backward.home.stats.as<float>() + 2 * batch * problem.heads;
    cpu::compute_delta(shape, out.view(0, batch, element), d_out.view(0, batch, element), stats + 1,
                       {step, 2});
    for (int64_t head = 0; head < problem.heads; ++head) {
      const float* const lse =
          memory.lse.as<float>() + (batch * problem.heads + head) * memory.rows;
      for (int64_t row = 0; row < memory.rows; ++row) stats[row * step + 2 * head] = lse[row];
    }
  }
}

void run_add(RankMemory& memory, const Op& op) {
  BackwardMemory& backward = memory.backward;
  const Problem& problem = memory.problem;
  const GradientBuffer& from = backward.gradients[static_cast<size_t>(op.source_state)];
  const bool is_home = op.state == kHomeBuffer;
  if (op.payload == Payload::kQueryGradients) {
    const Pages& to =
        is_home ? backward.d_queries : backward.gradients[static_cast<size_t>(op.state)].first;
    const int64_t row = problem.batch * problem.heads * problem.head_dim;
    add_values(to.as<float>() + op.buffer_begin * row, from.first.as<float>(),
               (op.q_end - op.q_begin) * row);
    return;
  }
  const GradientBuffer& to =
      is_home ? backward.d_keys : backward.gradients[static_cast<size_t>(op.state)];
  const int64_t keys = op.kv_end - op.kv_begin;
  const int64_t k_token = problem.batch * problem.kv_heads * problem.head_dim;
  const int64_t v_token = problem.batch * problem.kv_heads * problem.head_dim_v;
  add_values(to.first.as<float>() + op.buffer_begin * k_token, from.first.as<float>(),
             keys * k_token);
  add_values(to.second.as<float>() + op.buffer_begin * v_token, from.second.as<float>(),
             keys * v_token);
}

}  // namespace ring
