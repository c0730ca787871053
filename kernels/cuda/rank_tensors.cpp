#include "kernels/cuda/rank_tensors.h"

#include <algorithm>
#include <numbers>

#include "core/error.h"
#include "kernels/cuda/shard_data.h"

namespace ring::cuda {
namespace {

constexpr Bytes kFloat = 4;

float* as_floats(std::byte* at) { return reinterpret_cast<float*>(at); }
const uint16_t* elements(const std::byte* at) { return reinterpret_cast<const uint16_t*>(at); }

}  // namespace

RankTensors::RankTensors(const RingProgram& program, int rank, const DataSource& data,
                         DeviceRuntime& runtime, int device)
    : program_(program), rank_(rank), runtime_(runtime), device_(device) {
  if (!program.has_attention) {
    take_plain();
    return;
  }
  problem_ = program.problem;
  const RankStorage& storage = program.rank_programs[static_cast<size_t>(rank)].storage;
  rows_ = storage.query_tokens;
  const Bytes element = size_bytes(problem_.dtype);
  const auto tensor = [&](Tokens tokens, int64_t heads, int64_t dim) {
    return take(tokens * problem_.batch * heads * dim * element);
  };
  const auto kv_tensors = [&](Tokens tokens) -> KvTensors {
    return {tensor(tokens, problem_.kv_heads, problem_.head_dim),
            tensor(tokens, problem_.kv_heads, problem_.head_dim_v)};
  };
  q_ = tensor(rows_, problem_.heads, problem_.head_dim);
  home_ = kv_tensors(storage.home_tokens);
  for (int32_t i = 0; i < storage.buffers; ++i)
    receive_.push_back(kv_tensors(storage.buffer_tokens));
  const int64_t state_rows = rows_ * problem_.batch * problem_.heads;
  for (int32_t i = 0; i < storage.states; ++i) {
    states_.push_back({as_floats(take(state_rows * problem_.head_dim_v * kFloat)),
                       as_floats(take(state_rows * kFloat)), as_floats(take(state_rows * kFloat))});
  }
  out_ = tensor(rows_, problem_.heads, problem_.head_dim_v);
  lse_ = as_floats(take(state_rows * kFloat));
  upload_tensor(data, Tensor::kQuery, problem_.heads, problem_.head_dim, q_);
  upload_tensor(data, Tensor::kKey, problem_.kv_heads, problem_.head_dim, home_.k);
  upload_tensor(data, Tensor::kValue, problem_.kv_heads, problem_.head_dim_v, home_.v);
}

std::byte* RankTensors::take(Bytes bytes) {
  bytes_ += bytes;
  return runtime_.allocate(device_, bytes);
}

void RankTensors::take_plain() {
  const RankProgram& rank = program_.rank_programs[static_cast<size_t>(rank_)];
  int32_t buffers = rank.storage.buffers;
  Bytes bytes = 0;
  for (const Op& op : rank.ops) {
    buffers = std::max(buffers, op.buffer + 1);
    bytes = std::max(bytes, op.bytes);
  }
  home_ = {take(bytes), take(bytes)};
  for (int32_t i = 0; i < buffers; ++i) receive_.push_back({take(bytes), nullptr});
}

void RankTensors::upload_tensor(const DataSource& data, Tensor tensor, int64_t heads, int64_t dim,
                                std::byte* to) {
  const std::vector<std::byte> host =
      shard_values(data, tensor, program_.partition.shard(rank_), problem_, heads, dim);
  runtime_.upload(to, host);
}

std::array<Piece, 2> RankTensors::pieces(const Op& op) const {
  const KvTensors& buffer = kv(op.buffer);
  if (!program_.has_attention) return {{{buffer.k, op.bytes}, {}}};
  const Bytes token = problem_.batch * problem_.kv_heads * size_bytes(problem_.dtype);
  const Bytes k_token = token * problem_.head_dim, v_token = token * problem_.head_dim_v;
  const Tokens tokens = op.kv_end - op.kv_begin;
  return {{{buffer.k + op.buffer_begin * k_token, tokens * k_token},
           {buffer.v + op.buffer_begin * v_token, tokens * v_token}}};
}

std::array<Piece, 2> RankTensors::stage(const Op& op) {
  std::array<Piece, 2> staged = pieces(op);
  for (Piece& piece : staged) piece.data = piece.bytes > 0 ? take(piece.bytes) : nullptr;
  return staged;
}

StateView RankTensors::state_view(int32_t state, const Op& op) const {
  const State& at = states_[static_cast<size_t>(state)];
  const int64_t first = op.head_begin * rows_ + op.q_begin;
  return {at.u + first * problem_.head_dim_v, at.m + first, at.l + first, problem_.heads * rows_,
          rows_};
}

const KeyRange* RankTensors::upload_spans(const Op& op) {
  const int64_t rows = op.q_end - op.q_begin;
  if (op.active_rows == rows && op.edge_rows == 0) return nullptr;
  std::vector<KeyInterval> intervals;
  problem_.mask.fill_spans(slice(program_.partition.shard(rank_), op.q_begin, op.q_end),
                           slice(program_.partition.shard(op.kv_shard), op.kv_begin, op.kv_end),
                           intervals);
  std::vector<KeyRange> spans;
  for (const KeyInterval& seen : intervals)
    spans.push_back({static_cast<int32_t>(seen.begin), static_cast<int32_t>(seen.end)});
  std::byte* const to = take(static_cast<Bytes>(spans.size() * sizeof(KeyRange)));
  runtime_.upload(to, std::as_bytes(std::span(spans)));
  return reinterpret_cast<const KeyRange*>(to);
}

AttendCall RankTensors::attend_call(const Op& op, int32_t head_begin, int32_t head_end) const {
  const int64_t group = problem_.heads / problem_.kv_heads;
  const auto view = [&](const std::byte* data, int64_t heads, int64_t dim, int64_t token,
                        int64_t head) -> ConstTensor {
    return {elements(data) + (token * problem_.batch * heads + head) * dim, heads * dim,
            problem_.batch * heads * dim, dim};
  };
  AttendCall call;
  ForwardParams& p = call.params;
  const KvTensors& keys = kv(op.buffer);
  p.q = view(q_, problem_.heads, problem_.head_dim, op.q_begin, head_begin);
  p.k = view(keys.k, problem_.kv_heads, problem_.head_dim, op.buffer_begin, head_begin / group);
  p.v = view(keys.v, problem_.kv_heads, problem_.head_dim_v, op.buffer_begin, head_begin / group);
  Op heads = op;
  heads.head_begin = head_begin;
  p.state = state_view(op.state, heads);
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

std::vector<KernelCall> RankTensors::calls(const Op& op) {
  const int heads = op.head_end - op.head_begin, batch = static_cast<int>(problem_.batch);
  const auto rows = static_cast<int32_t>(op.q_end - op.q_begin);
  const auto dim_v = static_cast<int32_t>(problem_.head_dim_v);
  switch (op.kind) {
    case OpKind::kAttend:
      return attend_calls(op);
    case OpKind::kMerge:
      return {MergeCall{
          {state_view(op.state, op), state_view(op.source_state, op), rows, dim_v}, heads, batch}};
    case OpKind::kFinalize: {
      std::vector<KernelCall> calls;
      const StateView state = state_view(op.state, op);
      if (op.starts_state) calls.emplace_back(ResetCall{{state, rows, dim_v}, heads, batch});
      const int64_t token = problem_.batch * problem_.heads * dim_v;
      auto* const out =
          reinterpret_cast<uint16_t*>(out_) + op.q_begin * token + int64_t{op.head_begin} * dim_v;
      const MutableTensor to{out, problem_.heads * dim_v, token, dim_v};
      calls.emplace_back(
          FinalizeCall{{state, to, lse_ + op.head_begin * rows_ + op.q_begin, rows, dim_v},
                       heads,
                       batch,
                       problem_.dtype});
      return calls;
    }
    case OpKind::kCompute:
      return {SpinCall{op.fixed_ps}};
    case OpKind::kCopy:
    case OpKind::kSend:
    case OpKind::kReceive:
    case OpKind::kBackward:
    case OpKind::kDelta:
    case OpKind::kAdd:
      break;  // No kernels; GpuExecutor refuses the last three.
  }
  return {};
}

void RankTensors::read_row(int64_t batch, int64_t row, std::span<std::byte> out,
                           std::span<float> lse) const {
  runtime_.download(out, out_ + (row * problem_.batch + batch) * static_cast<Bytes>(out.size()));
  for (size_t head = 0; head < lse.size(); ++head) {
    const float* const from =
        lse_ + (batch * problem_.heads + static_cast<int64_t>(head)) * rows_ + row;
    runtime_.download(std::as_writable_bytes(lse.subspan(head, 1)),
                      reinterpret_cast<const std::byte*>(from));
  }
}

}  // namespace ring::cuda
