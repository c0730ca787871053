// The ops of the backward pass as calls on RankTensors.
#include "core/error.h"
#include "kernels/cuda/rank_tensors.h"
#include "kernels/executor_lane.h"

namespace ring::cuda {
namespace {

constexpr Bytes kFloat = 4;

std::byte* as_bytes(float* values) { return reinterpret_cast<std::byte*>(values); }

}  // namespace

TensorView RankTensors::gradient_view(Payload payload, int part, int32_t index) const {
  const bool is_home = index == kHomeBuffer, is_uniform = !gradients_->sums.empty();
  const bool is_plain = is_home || is_uniform, is_query = payload == Payload::kQueryGradients;
  const HeadRange heads = is_plain ? HeadRange{0, problem_.heads} : buffer(index).query_heads;
  std::byte* at = nullptr;
  if (!is_plain) {
    at = part == 0 ? buffer(index).k : buffer(index).v;
  } else if (is_home && is_query) {
    at = as_bytes(gradients_->d_queries);
  } else {
    const RankGradients::Sums& sums =
        is_home ? gradients_->d_keys : gradients_->sums[static_cast<size_t>(index)];
    at = as_bytes(part == 0 ? sums.first : sums.second);
  }
  return {at, is_query ? heads : kv_heads_of(problem_, heads),
          part == 0 ? problem_.head_dim : problem_.head_dim_v};
}

RankTensors::Side RankTensors::side(int32_t index) const {
  const bool is_home = index == kHomeBuffer;
  if (!is_home && !gradients_->received.empty()) {
    const RankGradients::QuerySide& at = gradients_->received[static_cast<size_t>(index)];
    const HeadRange heads{0, problem_.heads};
    return {
        {at.q, heads, problem_.head_dim}, {at.d_out, heads, problem_.head_dim_v}, at.lse, at.delta};
  }
  return {view(Payload::kQuery, 0, index), view(Payload::kOutputGradient, 0, index),
          is_home ? gradients_->home.lse : buffer(index).lse,
          is_home ? gradients_->home.delta : buffer(index).delta};
}

float* RankTensors::sums_at(const TensorView& view, int64_t row, int64_t head) const {
  const int64_t heads = view.heads.count();
  return reinterpret_cast<float*>(view.data) +
         (row * problem_.batch * heads + head - view.heads.begin) * view.dim;
}

ClearCall RankTensors::clear_call(const TensorView& view, int64_t at, int64_t count) const {
  const Bytes token = problem_.batch * view.heads.count() * view.dim * kFloat;
  return {view.data + at * token, count * token};
}

RankTensors::Operands RankTensors::operands(const Op& op) const {
  const bool keys_move = op.payload == Payload::kKeyValue;
  const int32_t keys = keys_move ? op.buffer : op.q_buffer;
  const int32_t row_sums = keys_move ? op.source_state : op.state;
  const int32_t key_sums = keys_move ? op.state : op.source_state;
  return {side(keys_move ? op.q_buffer : op.buffer), view(Payload::kKeyValue, 0, keys),
          view(Payload::kKeyValue, 1, keys),         view(Payload::kQueryGradients, 0, row_sums),
          view(Payload::kKeyGradients, 0, key_sums), view(Payload::kKeyGradients, 1, key_sums),
          keys_move ? op.q_begin : op.buffer_begin,  keys_move ? op.buffer_begin : op.kv_begin};
}

std::vector<KernelCall> RankTensors::backward_calls(const Op& op, const KeyRange* spans) const {
  const Operands at = operands(op);
  const int64_t rows = op.q_end - op.q_begin, keys = op.kv_end - op.kv_begin;
  std::vector<KernelCall> calls;
  if (op.starts_state && op.payload == Payload::kKeyValue) {
    calls.emplace_back(clear_call(at.dk, at.kv_at, keys));
    calls.emplace_back(clear_call(at.dv, at.kv_at, keys));
  } else if (op.starts_state) {
    calls.emplace_back(clear_call(at.dq, at.q_at, rows));
  }
  if (op.visible_pairs > 0) calls.emplace_back(backward_call(op, at, spans));
  return calls;
}

BackwardCall RankTensors::backward_call(const Op& op, const Operands& at,
                                        const KeyRange* spans) const {
  // Of lse, delta and dq the same row and head stand at the same place.
  RING_ASSERT(at.dq.heads == at.side.q.heads);
  const HeadRange heads = query_heads(problem_, op.head_begin, op.head_end);
  const HeadRange kv_heads = kv_heads_of(problem_, heads);
  const int64_t of_row = at.dq.heads.count(), of_key = at.dk.heads.count();
  const int64_t first = at.q_at * problem_.batch * of_row + heads.begin - at.dq.heads.begin;
  BackwardCall call;
  BackwardParams& p = call.params;
  p.q = tensor(at.side.q, at.q_at, heads.begin);
  p.d_out = tensor(at.side.d_out, at.q_at, heads.begin);
  p.k = tensor(at.k, at.kv_at, kv_heads.begin);
  p.v = tensor(at.v, at.kv_at, kv_heads.begin);
  p.lse = at.side.lse + first;
  p.delta = at.side.delta + first;
  p.dq = sums_at(at.dq, at.q_at, heads.begin);
  p.dk = sums_at(at.dk, at.kv_at, kv_heads.begin);
  p.dv = sums_at(at.dv, at.kv_at, kv_heads.begin);
  p.row_batch_stride = of_row;
  p.row_head_stride = p.key_head_stride = 1;
  p.row_stride = problem_.batch * of_row;
  p.key_batch_stride = of_key;
  p.key_stride = problem_.batch * of_key;
  p.spans = spans;
  p.q_rows = static_cast<int32_t>(op.q_end - op.q_begin);
  p.kv_rows = static_cast<int32_t>(op.kv_end - op.kv_begin);
  // The heads of an op are whole groups, or a part of one.
  p.group = static_cast<int32_t>(heads.count() / kv_heads.count());
  p.scale = problem_.softmax_scale();
  call.dim_qk = static_cast<int>(problem_.head_dim);
  call.dim_v = static_cast<int>(problem_.head_dim_v);
  call.heads = static_cast<int>(heads.count());
  call.batch = static_cast<int>(problem_.batch);
  call.dtype = problem_.dtype;
  return call;
}

std::vector<KernelCall> RankTensors::delta_calls(const Op& op) const {
  const int64_t rows = op.q_end - op.q_begin;
  std::vector<KernelCall> calls;
  if (op.starts_state) {
    const int64_t keys = op.state == kHomeBuffer ? rows_ : rows;
    calls.emplace_back(clear_call(view(Payload::kKeyGradients, 0, op.state), 0, keys));
    calls.emplace_back(clear_call(view(Payload::kKeyGradients, 1, op.state), 0, keys));
    calls.emplace_back(clear_call(view(Payload::kQueryGradients, 0, op.source_state), 0, rows));
  }
  const Side to = side(op.q_buffer);
  const TensorView out = view(Payload::kOutput, 0, op.buffer);
  RING_ASSERT(out.heads == to.q.heads);
  const int64_t heads = out.heads.count();
  const bool is_home = op.buffer == kHomeBuffer;
  const int64_t lse_rows = is_home ? rows_ : buffer(op.buffer).tokens;
  DeltaCall call;
  DeltaParams& p = call.params;
  p.out = tensor(out, 0, out.heads.begin);
  p.d_out = tensor(to.d_out, 0, out.heads.begin);
  p.delta = to.delta;
  p.batch_stride = heads;
  p.head_stride = 1;
  p.row_stride = problem_.batch * heads;
  p.rows = static_cast<int32_t>(rows);
  p.dim_v = static_cast<int32_t>(problem_.head_dim_v);
  p.lse = is_home ? lse_ : reinterpret_cast<float*>(buffer(op.buffer).v);
  p.lse_batch_stride = heads * lse_rows;
  p.lse_head_stride = lse_rows;
  p.lse_copy = to.lse;
  call.heads = static_cast<int>(heads);
  call.batch = static_cast<int>(problem_.batch);
  call.dtype = problem_.dtype;
  calls.emplace_back(call);
  return calls;
}

std::vector<KernelCall> RankTensors::add_calls(const Op& op) const {
  const HeadRange heads =
      heads_in(problem_, op.payload, query_heads(problem_, op.head_begin, op.head_end));
  std::vector<KernelCall> calls;
  for (int part = 0; part < tensors_of(op.payload); ++part) {
    const TensorView from = view(op.payload, part, op.source_state);
    const TensorView to = view(op.payload, part, op.state);
    for (const RowRun& run : prepare_row_runs(program_, op)) {
      AddParams p;
      p.to = sums_at(to, run.target, heads.begin);
      p.from = sums_at(from, run.source, heads.begin);
      p.count = heads.count() * from.dim;
      p.rows = run.count * problem_.batch;
      p.to_stride = to.heads.count() * to.dim;
      p.from_stride = from.heads.count() * from.dim;
      calls.emplace_back(AddCall{p});
    }
  }
  return calls;
}

Pieces RankTensors::side_pieces(const Op& op) const {
  const Side at = side(op.buffer);
  const int64_t rows = op.q_end - op.q_begin, first = op.buffer_begin;
  const Bytes values = problem_.batch * at.q.heads.count();
  const auto piece = [&](std::byte* data, Bytes row_bytes) {
    return Piece{data + first * row_bytes, rows * row_bytes};
  };
  const Bytes element = size_bytes(problem_.dtype);
  return {{piece(at.q.data, values * at.q.dim * element),
           piece(at.d_out.data, values * at.d_out.dim * element),
           piece(as_bytes(at.lse), values * kFloat), piece(as_bytes(at.delta), values * kFloat)}};
}

void RankTensors::read_gradients(Payload payload, int part, int32_t buffer, int64_t batch,
                                 int64_t row, std::span<float> all_heads) const {
  const TensorView from = view(payload, part, buffer);
  const std::span<float> values =
      all_heads.subspan(static_cast<size_t>(from.heads.begin * from.dim),
                        static_cast<size_t>(from.heads.count() * from.dim));
  const float* const at = reinterpret_cast<const float*>(from.data) +
                          (row * problem_.batch + batch) * static_cast<int64_t>(values.size());
  runtime_.download(std::as_writable_bytes(values), reinterpret_cast<const std::byte*>(at));
}

void RankTensors::write_output(int32_t index, int64_t row, int64_t rows, int64_t batch,
                               std::span<const std::byte> out, std::span<const float> lse) {
  const TensorView to = view(Payload::kOutput, 0, index);
  const Bytes head = to.dim * size_bytes(problem_.dtype);
  const int64_t heads = to.heads.count();
  runtime_.upload(
      to.data + (row * problem_.batch + batch) * heads * head,
      out.subspan(static_cast<size_t>(to.heads.begin * head), static_cast<size_t>(heads * head)));
  float* const logs = index == kHomeBuffer ? lse_ : reinterpret_cast<float*>(buffer(index).v);
  for (int64_t h = to.heads.begin; h < to.heads.end; ++h) {
    float* const at = logs + (batch * heads + h - to.heads.begin) * rows + row;
    runtime_.upload(as_bytes(at), std::as_bytes(lse.subspan(static_cast<size_t>(h), 1)));
  }
}

}  // namespace ring::cuda
