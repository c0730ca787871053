#include "kernels/cuda/rank_tensors.h"

#include <algorithm>
#include <numbers>

#include "core/error.h"
#include "kernels/cuda/shard_data.h"
#include "kernels/executor_lane.h"

namespace ring::cuda {
namespace {

constexpr Bytes kFloat = 4;

const uint16_t* elements(const std::byte* at) { return reinterpret_cast<const uint16_t*>(at); }

}  // namespace

ConstTensor RankTensors::tensor(const TensorView& view, int64_t row, int64_t head) const {
  const int64_t heads = view.heads.count(), token = problem_.batch * heads * view.dim;
  return {elements(view.data) + row * token + (head - view.heads.begin) * view.dim,
          heads * view.dim, token, view.dim};
}

StateView RankTensors::state_view(int32_t state, const Op& op, int64_t head) const {
  const State& at = states_[static_cast<size_t>(state)];
  const int64_t rows = at.is_packed ? op.q_end - op.q_begin : rows_;
  const int64_t first = (head - at.heads.begin) * rows + (at.is_packed ? 0 : op.q_begin);
  return {at.u + first * problem_.head_dim_v, at.m + first, at.l + first, at.heads.count() * rows,
          rows};
}

const KeyRange* RankTensors::upload_spans(const Op& op) {
  const int64_t rows = op.q_end - op.q_begin;
  if (op.active_rows == rows && op.edge_rows == 0) return nullptr;
  const KeyRange*& kept =
      spans_[{op.q_shard, op.q_begin, op.q_end, op.kv_shard, op.kv_begin, op.kv_end}];
  if (kept != nullptr) return kept;
  std::vector<KeyInterval> intervals;
  problem_.mask.fill_spans(slice(program_.tokens_of(op.q_shard), op.q_begin, op.q_end),
                           slice(program_.tokens_of(op.kv_shard), op.kv_begin, op.kv_end),
                           intervals);
  std::vector<KeyRange> spans;
  for (const KeyInterval& seen : intervals)
    spans.push_back({static_cast<int32_t>(seen.begin), static_cast<int32_t>(seen.end)});
  std::byte* const to = take(static_cast<Bytes>(spans.size() * sizeof(KeyRange)));
  runtime_.upload(to, std::as_bytes(std::span(spans)));
  kept = reinterpret_cast<const KeyRange*>(to);
  return kept;
}

AttendCall RankTensors::attend_call(const Op& op, int32_t head_begin, int32_t head_end) const {
  const int64_t group = problem_.heads / problem_.kv_heads;
  AttendCall call;
  ForwardParams& p = call.params;
  p.q = tensor(view(Payload::kQuery, 0, op.q_buffer), op.q_at, head_begin);
  p.k = tensor(view(Payload::kKeyValue, 0, op.buffer), op.buffer_begin, head_begin / group);
  p.v = tensor(view(Payload::kKeyValue, 1, op.buffer), op.buffer_begin, head_begin / group);
  p.state = state_view(op.state, op, head_begin);
  p.q_rows = static_cast<int32_t>(op.q_end - op.q_begin);
  p.kv_rows = static_cast<int32_t>(op.kv_end - op.kv_begin);
  const bool is_within_one = (head_end - 1) / group == head_begin / group;
  p.group_inverse = is_within_one ? 0 : inverse_of(static_cast<int>(group));
  p.scale_log2e =
      static_cast<float>(static_cast<double>(problem_.softmax_scale()) * std::numbers::log2e);
  p.largest_score = largest_score(p.scale_log2e);
  p.starts_state = op.starts_state ? 1 : 0;
  call.dim_qk = static_cast<int>(problem_.head_dim);
  call.dim_v = static_cast<int>(problem_.head_dim_v);
  call.heads = head_end - head_begin;
  call.batch = static_cast<int>(problem_.batch);
  call.dtype = problem_.dtype;
  return call;
}

std::vector<KernelCall> RankTensors::attend_calls(const Op& op) {
  const KeyRange* const spans = upload_spans(op);
  const auto group = static_cast<int32_t>(problem_.heads / problem_.kv_heads);
  std::vector<KernelCall> calls;
  for (int32_t head = op.head_begin; head < op.head_end;) {
    // Whole KV heads in one call; a part of one in a call of its own.
    const int32_t whole_end = op.head_end / group * group;
    const bool is_whole = head % group == 0 && whole_end > head;
    const int32_t end = is_whole ? whole_end : std::min(op.head_end, (head / group + 1) * group);
    AttendCall call = attend_call(op, head, end);
    call.params.spans = spans;
    calls.emplace_back(call);
    head = end;
  }
  return calls;
}

float* RankTensors::lse_at(const Op& op, int64_t* batch_stride, int64_t* head_stride) const {
  const bool is_home = op.buffer == kHomeBuffer;
  const Buffer& at = buffer(op.buffer);
  const HeadRange heads = is_home ? HeadRange{0, problem_.heads} : at.query_heads;
  *head_stride = is_home ? rows_ : at.tokens;
  *batch_stride = heads.count() * *head_stride;
  float* const lse = is_home ? lse_ : reinterpret_cast<float*>(at.v);
  return lse + (op.head_begin - heads.begin) * *head_stride + op.q_at;
}

std::vector<KernelCall> RankTensors::finalize_calls(const Op& op) const {
  const int heads = op.head_end - op.head_begin, batch = static_cast<int>(problem_.batch);
  const auto rows = static_cast<int32_t>(op.q_end - op.q_begin);
  const auto dim_v = static_cast<int32_t>(problem_.head_dim_v);
  const StateView state = state_view(op.state, op, op.head_begin);
  std::vector<KernelCall> calls;
  if (op.starts_state) calls.emplace_back(ResetCall{{state, rows, dim_v}, heads, batch});
  if (op.payload == Payload::kPartial) {
    calls.emplace_back(NormalizeCall{{state, rows, dim_v}, heads, batch});
    return calls;
  }
  FinalizeCall call;
  FinalizeParams& p = call.params;
  p.state = state;
  const ConstTensor out = tensor(view(Payload::kOutput, 0, op.buffer), op.q_at, op.head_begin);
  p.out = {const_cast<uint16_t*>(out.data), out.batch_stride, out.token_stride, out.head_stride};
  p.lse = lse_at(op, &p.lse_batch_stride, &p.lse_head_stride);
  p.rows = rows;
  p.dim_v = dim_v;
  call.heads = heads;
  call.batch = batch;
  call.dtype = problem_.dtype;
  calls.emplace_back(call);
  return calls;
}

std::vector<KernelCall> RankTensors::copy_calls(const Op& op) const {
  if (!program_.has_attention) return {CopyRowsCall{home_.v, home_.k, 0, 0, op.bytes, 1}};
  const HeadRange heads =
      heads_in(problem_, op.payload, query_heads(problem_, op.head_begin, op.head_end));
  const std::vector<RowRun> runs = prepare_row_runs(program_, op);
  const Bytes element = element_bytes(problem_, op.payload);
  std::vector<KernelCall> calls;
  for (int part = 0; part < tensors_of(op.payload); ++part) {
    const TensorView from = view(op.payload, part, op.source_buffer);
    const TensorView to = view(op.payload, part, op.buffer);
    // A row of a batch element, all heads that the tensor has; of these the op moves some.
    const auto pitch = [&](const TensorView& at) { return at.heads.count() * at.dim * element; };
    const auto place = [&](const TensorView& at, int64_t row) {
      const Bytes head = (heads.begin - at.heads.begin) * at.dim * element;
      return at.data + row * problem_.batch * pitch(at) + head;
    };
    for (const RowRun& run : runs) {
      calls.emplace_back(CopyRowsCall{place(to, run.target), place(from, run.source), pitch(to),
                                      pitch(from), heads.count() * from.dim * element,
                                      run.count * problem_.batch});
    }
  }
  return calls;
}

std::vector<KernelCall> RankTensors::calls(const Op& op) {
  const int heads = op.head_end - op.head_begin, batch = static_cast<int>(problem_.batch);
  const auto rows = static_cast<int32_t>(op.q_end - op.q_begin);
  const auto dim_v = static_cast<int32_t>(problem_.head_dim_v);
  switch (op.kind) {
    case OpKind::kAttend:
      return attend_calls(op);
    case OpKind::kMerge: {
      std::vector<KernelCall> calls;
      const StateView state = state_view(op.state, op, op.head_begin);
      if (op.starts_state) calls.emplace_back(ResetCall{{state, rows, dim_v}, heads, batch});
      const StateView from = state_view(op.source_state, op, op.head_begin);
      calls.emplace_back(MergeCall{{state, from, rows, dim_v}, heads, batch});
      return calls;
    }
    case OpKind::kFinalize:
      return finalize_calls(op);
    case OpKind::kCompute:
      return {SpinCall{op.fixed_ps}};
    case OpKind::kCopy:
      return copy_calls(op);
    case OpKind::kReceive:
      if (!program_.has_attention || op.payload != Payload::kPartial) return {};
      return {CompleteCall{{state_view(op.state, op, op.head_begin), rows, dim_v}, heads, batch}};
    case OpKind::kSend:
      return {};
    case OpKind::kBackward:
      return backward_calls(op, upload_spans(op));
    case OpKind::kDelta:
      return delta_calls(op);
    case OpKind::kAdd:
      return add_calls(op);
  }
  return {};
}

Pieces RankTensors::pieces(const Op& op) const {
  if (!program_.has_attention) return {{{buffer(op.buffer).k, op.bytes}}};
  if (op.payload == Payload::kQuerySide) return side_pieces(op);
  const Tokens rows = op.q_end - op.q_begin;
  if (op.payload == Payload::kPartial) {
    const StateView state = state_view(op.state, op, op.head_begin);
    const Bytes values = problem_.batch * (op.head_end - op.head_begin) * rows * kFloat;
    return {{{reinterpret_cast<std::byte*>(state.u), values * problem_.head_dim_v},
             {reinterpret_cast<std::byte*>(state.m), values}}};
  }
  const bool has_keys = op.payload == Payload::kKeyValue || op.payload == Payload::kKeyGradients;
  const Tokens tokens = has_keys ? op.kv_end - op.kv_begin : rows;
  Pieces pieces;
  for (int part = 0; part < tensors_of(op.payload); ++part) {
    const TensorView at = view(op.payload, part, op.buffer);
    const Bytes token =
        problem_.batch * at.heads.count() * at.dim * element_bytes(problem_, op.payload);
    pieces[static_cast<size_t>(part)] = {at.data + op.buffer_begin * token, tokens * token};
  }
  return pieces;
}

Pieces RankTensors::stage(const Op& op) {
  Pieces staged = pieces(op);
  for (Piece& piece : staged) piece.data = piece.bytes > 0 ? take(piece.bytes) : nullptr;
  return staged;
}

void RankTensors::read_row(int64_t batch, int64_t row, std::span<std::byte> out) const {
  runtime_.download(out, out_ + (row * problem_.batch + batch) * static_cast<Bytes>(out.size()));
}

float RankTensors::read_lse(const Op& op, int64_t batch, int64_t head, int64_t row) const {
  int64_t batch_stride = 0, head_stride = 0;
  const float* const first = lse_at(op, &batch_stride, &head_stride);
  const float* const from =
      first + batch * batch_stride + (head - op.head_begin) * head_stride + row - op.q_begin;
  float lse = 0;
  runtime_.download(std::as_writable_bytes(std::span(&lse, 1)),
                    reinterpret_cast<const std::byte*>(from));
  return lse;
}

}  // namespace ring::cuda
