#include "kernels/executor_storage.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "kernels/input_buffers.h"

namespace ring {
namespace {

constexpr int64_t kFloat = 4;

Bytes token_bytes(const Problem& problem, int64_t heads, int64_t dim) {
  return problem.batch * heads * dim * size_bytes(problem.dtype);
}

KvBuffer kv_pages(const Problem& problem, Tokens tokens) {
  KvBuffer buffer;
  buffer.k = Pages(tokens * token_bytes(problem, problem.kv_heads, problem.head_dim));
  buffer.v = Pages(tokens * token_bytes(problem, problem.kv_heads, problem.head_dim_v));
  return buffer;
}

/// Fills (token, batch, head, dim) with the values of the tokens of a shard, of which a token has
/// `all_heads` heads.
void fill_tensor(const DataSource& data, Tensor tensor, const TokenRanges& tokens,
                 const Problem& problem, int64_t all_heads, const TensorView& view) {
  std::vector<float> values(static_cast<size_t>(all_heads * view.dim));
  const std::span<const float> kept =
      std::span<const float>(values).subspan(static_cast<size_t>(view.heads.begin * view.dim),
                                             static_cast<size_t>(view.heads.count() * view.dim));
  const Bytes step = view.heads.count() * view.dim * size_bytes(problem.dtype);
  std::byte* to = view.data;
  for (const AffineRange& range : tokens) {
    for (int64_t i = 0; i < range.count; ++i) {
      for (int64_t batch = 0; batch < problem.batch; ++batch, to += step) {
        data.fill(tensor, batch, range.position(i), values);
        store_elements(problem.dtype, kept, to);
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
  memory.home.k = Pages(bytes);
  memory.home.v = Pages(bytes);
  for (int32_t i = 0; i < buffers; ++i) memory.receive_buffers.emplace_back().k = Pages(bytes);
}

KvBuffer shaped_pages(const Problem& problem, const BufferShape& shape) {
  const HeadRange heads = query_heads(problem, shape.head_begin, shape.head_end);
  const int64_t kv_heads = kv_heads_of(problem, heads).count();
  KvBuffer buffer;
  buffer.query_heads = heads;
  buffer.tokens = shape.tokens;
  buffer.payload = shape.payload;
  const Bytes values = shape.tokens * problem.batch * heads.count();
  const Bytes key_values = shape.tokens * problem.batch * kv_heads;
  switch (shape.payload) {
    case Payload::kKeyValue:
      buffer.k = Pages(shape.tokens * token_bytes(problem, kv_heads, problem.head_dim));
      buffer.v = Pages(shape.tokens * token_bytes(problem, kv_heads, problem.head_dim_v));
      break;
    case Payload::kQuery:
      buffer.k = Pages(shape.tokens * token_bytes(problem, heads.count(), problem.head_dim));
      break;
    case Payload::kOutput:
      buffer.k = Pages(shape.tokens * token_bytes(problem, heads.count(), problem.head_dim_v));
      buffer.v = Pages(values * kFloat);
      break;
    case Payload::kOutputGradient:
      buffer.k = Pages(shape.tokens * token_bytes(problem, heads.count(), problem.head_dim_v));
      break;
    case Payload::kQuerySide:
      buffer.k = Pages(shape.tokens * token_bytes(problem, heads.count(), problem.head_dim));
      buffer.v = Pages(shape.tokens * token_bytes(problem, heads.count(), problem.head_dim_v));
      buffer.stats = Pages(values * 2 * kFloat);
      break;
    case Payload::kKeyGradients:
      buffer.k = Pages(key_values * problem.head_dim * kFloat);
      buffer.v = Pages(key_values * problem.head_dim_v * kFloat);
      break;
    case Payload::kQueryGradients:
      buffer.k = Pages(values * problem.head_dim * kFloat);
      break;
    case Payload::kPartial:
    case Payload::kState:
      throw_usage("a partial result lies in a state, not in a buffer");
  }
  return buffer;
}

/// The memory of `owner` with the heads of the shape.
KvBuffer shared_pages(const Problem& problem, const KvBuffer& owner, const BufferShape& shape) {
  KvBuffer buffer;
  buffer.k = owner.k.shared();
  buffer.v = owner.v.shared();
  buffer.stats = owner.stats.shared();
  buffer.payload = shape.payload;
  buffer.query_heads = query_heads(problem, shape.head_begin, shape.head_end);
  buffer.tokens = shape.tokens;
  return buffer;
}

StateBuffer packed_state(const Problem& problem, const StateShape& shape) {
  StateBuffer state;
  state.is_packed = true;
  state.heads = query_heads(problem, shape.head_begin, shape.head_end);
  const int64_t rows = shape.rows * problem.batch * state.heads.count();
  state.u = Pages(rows * problem.head_dim_v * kFloat);
  state.m = Pages(rows * kFloat);
  state.l = Pages(rows * kFloat);
  return state;
}

std::array<Part, kMaxParts> query_side_parts(const RankMemory& memory, const Op& op) {
  const QuerySideView side = memory.query_side(op.buffer);
  const Problem& problem = memory.problem;
  const int64_t heads = side.q.heads.count(), rows = op.q_end - op.q_begin, at = op.buffer_begin;
  const Bytes q = token_bytes(problem, heads, side.q.dim);
  const Bytes d_out = token_bytes(problem, heads, side.d_out.dim);
  const Bytes stats = problem.batch * heads * 2 * kFloat;
  return {{{side.q.data + at * q, rows * q},
           {side.d_out.data + at * d_out, rows * d_out},
           {reinterpret_cast<std::byte*>(side.stats) + at * stats, rows * stats}}};
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
  first_shaped_buffer = storage.buffers;
  rows = storage.query_tokens;
  if (storage.has_home_inputs) {
    q = Pages(rows * token_bytes(problem, problem.heads, problem.head_dim));
    home = kv_pages(problem, storage.home_tokens);
  }
  for (int32_t i = 0; i < storage.buffers; ++i)
    receive_buffers.push_back(kv_pages(problem, storage.buffer_tokens));
  const int64_t state_rows = rows * problem.batch * problem.heads;
  for (int32_t i = 0; i < storage.states; ++i) {
    states.push_back({Pages(state_rows * problem.head_dim_v * kFloat), Pages(state_rows * kFloat),
                      Pages(state_rows * kFloat)});
  }
  for (const BufferShape& shape : storage.shaped_buffers) {
    receive_buffers.push_back(
        shape.memory_of < 0
            ? shaped_pages(problem, shape)
            : shared_pages(problem, buffer(storage.buffers + shape.memory_of), shape));
  }
  for (const StateShape& shape : storage.shaped_states)
    states.push_back(packed_state(problem, shape));
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
    buffer.stats.touch();
  }
  for (const StateBuffer& state : states) {
    state.u.touch();
    state.m.touch();
    state.l.touch();
  }
  out.touch();
  lse.touch();
  if (!has_attention) return;
  backward.fill(problem, program.partition.shard(rank), data);
  for_each_input(program, rank, [&](const TokenRanges& tokens, Payload payload, int32_t buffer) {
    fill_buffer(data, tokens, payload, buffer);
  });
}

void RankMemory::fill_buffer(const DataSource& data, const TokenRanges& tokens, Payload payload,
                             int32_t buffer) {
  if (payload != Payload::kKeyValue) {
    const TensorView queries = tensor(Payload::kQuery, 0, buffer);
    fill_tensor(data, Tensor::kQuery, tokens, problem, problem.heads, queries);
    return;
  }
  fill_tensor(data, Tensor::kKey, tokens, problem, problem.kv_heads, tensor(payload, 0, buffer));
  fill_tensor(data, Tensor::kValue, tokens, problem, problem.kv_heads, tensor(payload, 1, buffer));
}

TensorView RankMemory::tensor(Payload payload, int part, int32_t index) const {
  if (is_gradient(payload)) return gradient_tensor(payload, part, index);
  const KvBuffer& at = buffer(index);
  const TensorPlaces places{.q = q.data(),
                            .out = out.data(),
                            .d_out = backward.home.d_out.data(),
                            .k = at.k.data(),
                            .v = at.v.data(),
                            .held = at.payload,
                            .buffer_heads = at.query_heads,
                            .is_home = index == kHomeBuffer,
                            .is_shaped = index >= first_shaped_buffer};
  return tensor_at(places, problem, payload, part);
}

TensorView RankMemory::gradient_tensor(Payload payload, int part, int32_t index) const {
  const bool is_home = index == kHomeBuffer, is_uniform = !backward.gradients.empty();
  const HeadRange heads =
      is_home || is_uniform ? HeadRange{0, problem.heads} : buffer(index).query_heads;
  if (payload == Payload::kQueryGradients) {
    const Pages& pages = is_home      ? backward.d_queries
                         : is_uniform ? backward.gradients[static_cast<size_t>(index)].first
                                      : buffer(index).k;
    return {pages.data(), heads, problem.head_dim};
  }
  const HeadRange kv = kv_heads_of(problem, heads);
  const bool is_plain = is_home || is_uniform;
  const GradientBuffer* const plain = is_home      ? &backward.d_keys
                                      : is_uniform ? &backward.gradients[static_cast<size_t>(index)]
                                                   : nullptr;
  const Pages& dk = is_plain ? plain->first : buffer(index).k;
  const Pages& dv = is_plain ? plain->second : buffer(index).v;
  return part == 0 ? TensorView{dk.data(), kv, problem.head_dim}
                   : TensorView{dv.data(), kv, problem.head_dim_v};
}

QuerySideView RankMemory::query_side(int32_t index) const {
  if (index != kHomeBuffer && !backward.received.empty()) {
    const QuerySideBuffer& side = backward.received[static_cast<size_t>(index)];
    const HeadRange heads{0, problem.heads};
    return {{side.q.data(), heads, problem.head_dim},
            {side.d_out.data(), heads, problem.head_dim_v},
            side.stats.as<float>()};
  }
  const Pages& stats = index == kHomeBuffer ? backward.home.stats : buffer(index).stats;
  return {tensor(Payload::kQuery, 0, index), tensor(Payload::kOutputGradient, 0, index),
          stats.as<float>()};
}

float* RankMemory::lse_of_output(int32_t index) const {
  return index == kHomeBuffer ? lse.as<float>() : buffer(index).v.as<float>();
}

void RankMemory::reset_state(const Op& op) {
  const int dim_v = static_cast<int>(problem.head_dim_v);
  for_row_runs(*this, op, {&op.state, 1}, [&](int64_t batch, int64_t head, int64_t run) {
    cpu::reset_state(state_view(*this, op, op.state, batch, head), run, dim_v);
  });
}

void RankMemory::complete_partial(const Op& op) {
  for_row_runs(*this, op, {&op.state, 1}, [&](int64_t batch, int64_t head, int64_t run) {
    const cpu::AttendState view = state_view(*this, op, op.state, batch, head);
    for (int64_t i = 0; i < run; ++i) view.l[i] = std::isinf(view.m[i]) ? 0.0F : 1.0F;
  });
}

Bytes RankMemory::bytes() const {
  Bytes sum =
      backward.bytes() + q.bytes() + home.k.bytes() + home.v.bytes() + out.bytes() + lse.bytes();
  for (const KvBuffer& buffer : receive_buffers)
    sum += buffer.k.bytes() + buffer.v.bytes() + buffer.stats.bytes();
  for (const StateBuffer& state : states)
    sum += state.u.bytes() + state.m.bytes() + state.l.bytes();
  return sum;
}

cpu::AttendState state_view(const RankMemory& memory, const Op& op, int32_t state, int64_t batch,
                            int64_t head) {
  const StateBuffer& buffer = memory.states[static_cast<size_t>(state)];
  const int64_t first =
      buffer.is_packed
          ? (batch * buffer.heads.count() + head - buffer.heads.begin) * (op.q_end - op.q_begin)
          : (batch * memory.problem.heads + head) * memory.rows + op.q_begin;
  return {buffer.u.as<float>() + first * memory.problem.head_dim_v, buffer.m.as<float>() + first,
          buffer.l.as<float>() + first};
}

bool is_contiguous(const RankMemory& memory, const Op& op, int32_t state) {
  return memory.states[static_cast<size_t>(state)].is_packed ||
         op.q_end - op.q_begin == memory.rows;
}

std::array<Part, kMaxParts> message_parts(const RankMemory& memory, const Op& op) {
  if (!memory.has_attention) return {{{memory.buffer(op.buffer).k.data(), op.bytes}, {}}};
  const Problem& problem = memory.problem;
  const Tokens rows = op.q_end - op.q_begin;
  if (is_state(op.payload)) {
    const cpu::AttendState state = state_view(memory, op, op.state, 0, op.head_begin);
    const Bytes values = problem.batch * (op.head_end - op.head_begin) * rows * kFloat;
    const Bytes sums = op.payload == Payload::kState ? values : 0;
    return {{{reinterpret_cast<std::byte*>(state.u), values * problem.head_dim_v},
             {reinterpret_cast<std::byte*>(state.m), values},
             {reinterpret_cast<std::byte*>(state.l), sums}}};
  }
  if (op.payload == Payload::kQuerySide) return query_side_parts(memory, op);
  const Tokens tokens = op.payload == Payload::kKeyValue || op.payload == Payload::kKeyGradients
                            ? op.kv_end - op.kv_begin
                            : rows;
  std::array<Part, kMaxParts> parts;
  for (int part = 0; part < tensors_of(op.payload); ++part) {
    const TensorView view = memory.tensor(op.payload, part, op.buffer);
    const Bytes token =
        problem.batch * view.heads.count() * view.dim * element_bytes(problem, op.payload);
    parts[static_cast<size_t>(part)] = {view.data + op.buffer_begin * token, tokens * token};
  }
  return parts;
}

}  // namespace ring
