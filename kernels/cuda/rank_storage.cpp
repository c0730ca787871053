// The memory of RankTensors: taken on the device, and filled with the values of the tokens.
#include <algorithm>

#include "core/error.h"
#include "kernels/cuda/rank_tensors.h"
#include "kernels/cuda/shard_data.h"
#include "kernels/input_buffers.h"

namespace ring::cuda {
namespace {

constexpr Bytes kFloat = 4;

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
  first_shaped_buffer_ = storage.buffers;
  take_home(storage);
  take_shaped(storage);
  fill(data);
  if (has_backward(problem_.pass)) {
    gradients_ =
        std::make_unique<RankGradients>(problem_, storage, program.partition.shard(rank), data,
                                        runtime, [this](Bytes bytes) { return take(bytes); });
  }
}

std::byte* RankTensors::take(Bytes bytes) {
  bytes_ += bytes;
  return runtime_.allocate(device_, bytes);
}

float* RankTensors::take_floats(int64_t count) {
  return reinterpret_cast<float*>(take(count * kFloat));
}

void RankTensors::take_plain() {
  const RankProgram& rank = program_.rank_programs[static_cast<size_t>(rank_)];
  int32_t buffers = rank.storage.buffers;
  Bytes bytes = 0;
  for (const Op& op : rank.ops) {
    buffers = std::max(buffers, op.buffer + 1);
    bytes = std::max(bytes, op.bytes);
  }
  home_.k = take(bytes);
  home_.v = take(bytes);
  for (int32_t i = 0; i < buffers; ++i) buffers_.emplace_back().k = take(bytes);
}

RankTensors::State RankTensors::state_of(HeadRange heads, Tokens rows, bool is_packed) {
  const int64_t values = rows * problem_.batch * heads.count();
  return {take_floats(values * problem_.head_dim_v), take_floats(values), take_floats(values),
          is_packed, heads};
}

void RankTensors::take_home(const RankStorage& storage) {
  const Bytes token = problem_.batch * size_bytes(problem_.dtype);
  const auto kv_buffer = [&](Tokens tokens) {
    const Bytes heads = tokens * token * problem_.kv_heads;
    Buffer buffer;
    buffer.k = take(heads * problem_.head_dim);
    buffer.v = take(heads * problem_.head_dim_v);
    return buffer;
  };
  const HeadRange all{0, problem_.heads};
  if (storage.has_home_inputs) {
    q_ = take(rows_ * token * problem_.heads * problem_.head_dim);
    home_ = kv_buffer(storage.home_tokens);
  }
  for (int32_t i = 0; i < storage.buffers; ++i)
    buffers_.push_back(kv_buffer(storage.buffer_tokens));
  for (int32_t i = 0; i < storage.states; ++i) states_.push_back(state_of(all, rows_, false));
  out_ = take(rows_ * token * problem_.heads * problem_.head_dim_v);
  lse_ = take_floats(rows_ * problem_.batch * problem_.heads);
}

void RankTensors::take_shaped(const RankStorage& storage) {
  for (const BufferShape& shape : storage.shaped_buffers) {
    if (shape.memory_of < 0) {
      buffers_.push_back(shaped_buffer(shape));
      continue;
    }
    Buffer same = buffer(storage.buffers + shape.memory_of);
    same.query_heads = query_heads(problem_, shape.head_begin, shape.head_end);
    buffers_.push_back(same);
  }
  for (const StateShape& shape : storage.shaped_states) {
    const HeadRange heads = query_heads(problem_, shape.head_begin, shape.head_end);
    states_.push_back(state_of(heads, shape.rows, true));
  }
}

RankTensors::Buffer RankTensors::shaped_buffer(const BufferShape& shape) {
  const HeadRange heads = query_heads(problem_, shape.head_begin, shape.head_end);
  const int64_t values = shape.tokens * problem_.batch;
  const Bytes element = size_bytes(problem_.dtype);
  Buffer buffer;
  buffer.query_heads = heads;
  buffer.payload = shape.payload;
  const int64_t keys = values * kv_heads_of(problem_, heads).count();
  buffer.tokens = shape.tokens;
  switch (shape.payload) {
    case Payload::kKeyValue:
      buffer.k = take(keys * element * problem_.head_dim);
      buffer.v = take(keys * element * problem_.head_dim_v);
      break;
    case Payload::kQuery:
      buffer.k = take(values * heads.count() * problem_.head_dim * element);
      break;
    case Payload::kOutput:
      buffer.k = take(values * heads.count() * problem_.head_dim_v * element);
      buffer.v = take(values * heads.count() * kFloat);
      break;
    case Payload::kOutputGradient:
      buffer.k = take(values * heads.count() * problem_.head_dim_v * element);
      break;
    case Payload::kQuerySide:
      buffer.k = take(values * heads.count() * problem_.head_dim * element);
      buffer.v = take(values * heads.count() * problem_.head_dim_v * element);
      buffer.lse = take_floats(values * heads.count());
      buffer.delta = take_floats(values * heads.count());
      break;
    case Payload::kKeyGradients:
      buffer.k = take(keys * problem_.head_dim * kFloat);
      buffer.v = take(keys * problem_.head_dim_v * kFloat);
      break;
    case Payload::kQueryGradients:
      buffer.k = take(values * heads.count() * problem_.head_dim * kFloat);
      break;
    case Payload::kPartial:
    case Payload::kState:
      throw_usage("a partial result lies in a state, not in a buffer");
  }
  return buffer;
}

void RankTensors::fill(const DataSource& data) {
  for_each_input(program_, rank_, [&](const TokenRanges& tokens, Payload payload, int32_t buffer) {
    fill_buffer(data, tokens, payload, buffer);
  });
}

void RankTensors::fill_buffer(const DataSource& data, const TokenRanges& tokens, Payload payload,
                              int32_t index) {
  if (payload != Payload::kKeyValue) {
    fill_tensor(data, Tensor::kQuery, tokens, problem_.heads, view(Payload::kQuery, 0, index));
    return;
  }
  fill_tensor(data, Tensor::kKey, tokens, problem_.kv_heads, view(payload, 0, index));
  fill_tensor(data, Tensor::kValue, tokens, problem_.kv_heads, view(payload, 1, index));
}

/// A token has `all_heads` heads, of which the tensor holds some.
void RankTensors::fill_tensor(const DataSource& data, Tensor tensor, const TokenRanges& tokens,
                              int64_t all_heads, const TensorView& view) {
  const std::vector<std::byte> all =
      shard_values(data, tensor, tokens, problem_, all_heads, view.dim);
  if (view.heads == HeadRange{0, all_heads}) {
    runtime_.upload(view.data, all);
    return;
  }
  const Bytes head = view.dim * size_bytes(problem_.dtype);
  std::vector<std::byte> kept;
  for (Bytes row = 0; row < static_cast<Bytes>(all.size()); row += all_heads * head) {
    const auto first = all.begin() + row + view.heads.begin * head;
    kept.insert(kept.end(), first, first + view.heads.count() * head);
  }
  runtime_.upload(view.data, kept);
}

TensorView RankTensors::view(Payload payload, int part, int32_t index) const {
  if (is_gradient(payload)) return gradient_view(payload, part, index);
  const Buffer& at = buffer(index);
  const TensorPlaces places{.q = q_,
                            .out = out_,
                            .d_out = gradients_ ? gradients_->home.d_out : nullptr,
                            .k = at.k,
                            .v = at.v,
                            .held = at.payload,
                            .buffer_heads = at.query_heads,
                            .is_home = index == kHomeBuffer,
                            .is_shaped = index >= first_shaped_buffer_};
  return tensor_at(places, problem_, payload, part);
}

}  // namespace ring::cuda
