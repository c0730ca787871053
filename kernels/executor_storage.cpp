#include "kernels/executor_storage.h"

#include <algorithm>

#include "core/error.h"

namespace ring {
namespace {

constexpr int64_t kFloat = 4;

Bytes token_bytes(const Problem& problem, int64_t heads, int64_t dim) {
  return problem.batch * heads * dim * size_bytes(problem.dtype);
}

KvBuffer kv_pages(const Problem& problem, Tokens tokens) {
  return {Pages(tokens * token_bytes(problem, problem.kv_heads, problem.head_dim)),
          Pages(tokens * token_bytes(problem, problem.kv_heads, problem.head_dim_v))};
}

/// Fills (token, batch, head, dim) at `to` with the values of the tokens of a shard.
void fill_tensor(const DataSource& data, Tensor tensor, const TokenRanges& tokens,
                 const Problem& problem, int64_t heads, int64_t dim, std::byte* to) {
  std::vector<float> values(static_cast<size_t>(heads * dim));
  const Bytes step = heads * dim * size_bytes(problem.dtype);
  for (const AffineRange& range : tokens) {
    for (int64_t i = 0; i < range.count; ++i) {
      for (int64_t batch = 0; batch < problem.batch; ++batch, to += step) {
        data.fill(tensor, batch, range.position(i), values);
        store_elements(problem.dtype, values, to);
      }
    }
  }
}

/// Bytes that the largest message through a buffer needs, for programs without attention.
void reserve_plain(const RankProgram& program, RankMemory& memory) {
  int32_t buffers = program.storage.buffers;
  Bytes bytes = 0;
  for (const Op& op : program.ops) {
    buffers = std::max(buffers, op.buffer + 1);
    bytes = std::max(bytes, op.bytes);
  }
  memory.home = {Pages(bytes), Pages(bytes)};
  for (int32_t i = 0; i < buffers; ++i) memory.receive_buffers.push_back({Pages(bytes), Pages()});
}

}  // namespace

RankMemory::RankMemory(const RingProgram& program, int rank) {
  const RankProgram& rank_program = program.rank_programs[static_cast<size_t>(rank)];
  has_attention = program.has_attention;
  if (!has_attention) {
    reserve_plain(rank_program, *this);
    return;
  }
  problem = program.problem;
  const RankStorage& storage = rank_program.storage;
  rows = storage.query_tokens;
  q = Pages(rows * token_bytes(problem, problem.heads, problem.head_dim));
  home = kv_pages(problem, storage.home_tokens);
  for (int32_t i = 0; i < storage.buffers; ++i)
    receive_buffers.push_back(kv_pages(problem, storage.buffer_tokens));
  const int64_t state_rows = rows * problem.batch * problem.heads;
  for (int32_t i = 0; i < storage.states; ++i) {
    states.push_back({Pages(state_rows * problem.head_dim_v * kFloat), Pages(state_rows * kFloat),
                      Pages(state_rows * kFloat)});
  }
  out = Pages(rows * token_bytes(problem, problem.heads, problem.head_dim_v));
  lse = Pages(state_rows * kFloat);
  backward = BackwardMemory(problem, storage);
}

void RankMemory::fill(const RingProgram& program, int rank, const DataSource& data) {
  q.touch();
  home.k.touch();
  home.v.touch();
  for (const KvBuffer& buffer : receive_buffers) {
    buffer.k.touch();
    buffer.v.touch();
  }
  for (const StateBuffer& state : states) {
    state.u.touch();
    state.m.touch();
    state.l.touch();
  }
  out.touch();
  lse.touch();
  if (!has_attention) return;
  const TokenRanges& tokens = program.partition.shard(rank);
  backward.fill(problem, tokens, data);
  fill_tensor(data, Tensor::kQuery, tokens, problem, problem.heads, problem.head_dim, q.data());
  fill_tensor(data, Tensor::kKey, tokens, problem, problem.kv_heads, problem.head_dim,
              home.k.data());
  fill_tensor(data, Tensor::kValue, tokens, problem, problem.kv_heads, problem.head_dim_v,
              home.v.data());
}

void RankMemory::reset_state(const Op& op) {
  const int dim_v = static_cast<int>(problem.head_dim_v);
  for_row_runs(*this, op, [&](int64_t batch, int64_t head, int64_t row, int64_t run) {
    cpu::reset_state(state_view(*this, op.state, batch, head, row), run, dim_v);
  });
}

Bytes RankMemory::bytes() const {
  Bytes sum =
      backward.bytes() + q.bytes() + home.k.bytes() + home.v.bytes() + out.bytes() + lse.bytes();
  for (const KvBuffer& buffer : receive_buffers) sum += buffer.k.bytes() + buffer.v.bytes();
  for (const StateBuffer& state : states)
    sum += state.u.bytes() + state.m.bytes() + state.l.bytes();
  return sum;
}

cpu::AttendState state_view(const RankMemory& memory, int32_t state, int64_t batch, int64_t head,
                            int64_t row) {
  const StateBuffer& buffer = memory.states[static_cast<size_t>(state)];
  const int64_t first = (batch * memory.problem.heads + head) * memory.rows + row;
  return {buffer.u.as<float>() + first * memory.problem.head_dim_v, buffer.m.as<float>() + first,
          buffer.l.as<float>() + first};
}

std::array<Part, kMaxParts> message_parts(const RankMemory& memory, const Op& op) {
  const bool is_backward = op.payload == Payload::kQuerySide || is_gradient(op.payload);
  if (memory.has_attention && is_backward) return backward_parts(memory, op);
  const KvBuffer& buffer = memory.buffer(op.buffer);
  if (!memory.has_attention) return {{{buffer.k.data(), op.bytes}, {}}};
  const Problem& problem = memory.problem;
  const Bytes k_token = token_bytes(problem, problem.kv_heads, problem.head_dim);
  const Bytes v_token = token_bytes(problem, problem.kv_heads, problem.head_dim_v);
  const Tokens tokens = op.kv_end - op.kv_begin;
  return {{{buffer.k.data() + op.buffer_begin * k_token, tokens * k_token},
           {buffer.v.data() + op.buffer_begin * v_token, tokens * v_token}}};
}

}  // namespace ring
