// Results of a CpuExecutor, and what a backward pass takes over from a forward pass.
#include <algorithm>
#include <string>

#include "core/error.h"
#include "kernels/executor_impl.h"
#include "kernels/forward_part.h"

namespace ring {

void CpuExecutor::Impl::run_forward(const DataSource& data) {
  forward_program = std::make_unique<RingProgram>(forward_part_of(program));
  forward = std::make_unique<CpuExecutor>(*forward_program, data, options);
  if (!forward->run().is_complete)
    throw Error(ErrorKind::kInterrupted, "stopped during the forward pass");
}

void CpuExecutor::Impl::take_forward(int rank) {
  if (!forward) return;
  for_each_forward_output(program, rank, [&](const TokenRanges& tokens, int32_t buffer) {
    take_output(rank, buffer, tokens);
  });
}

void CpuExecutor::Impl::take_output(int rank, int32_t buffer, const TokenRanges& tokens) {
  const RankMemory& memory = ranks[static_cast<size_t>(rank)]->memory;
  const Problem& problem = program.problem;
  const TensorView to = memory.tensor(Payload::kOutput, 0, buffer);
  const int64_t lse_rows = token_count(tokens), element = size_bytes(problem.dtype);
  const auto head_bytes = static_cast<size_t>(to.dim * element);
  std::vector<float> out(static_cast<size_t>(problem.heads * problem.head_dim_v));
  std::vector<float> lse(static_cast<size_t>(problem.heads));
  int64_t row = 0;
  for (const AffineRange& range : tokens) {
    for (int64_t i = 0; i < range.count; ++i, ++row) {
      for (int64_t batch = 0; batch < problem.batch; ++batch) {
        forward->read_output(batch, range.position(i), out, lse);
        const std::span<const std::byte> bytes = forward->output_bytes(batch, range.position(i));
        for (int64_t head = to.heads.begin; head < to.heads.end; ++head) {
          const auto from = bytes.subspan(static_cast<size_t>(head) * head_bytes, head_bytes);
          std::copy(from.begin(), from.end(),
                    to.data + to.at(row, batch, problem.batch, head) * element);
          const int64_t plane = batch * to.heads.count() + head - to.heads.begin;
          memory.lse_of_output(buffer)[plane * lse_rows + row] = lse[static_cast<size_t>(head)];
        }
      }
    }
  }
}

std::pair<int, int64_t> CpuExecutor::Impl::place_of(int64_t position) const {
  for (int rank = 0; rank < program.ranks(); ++rank) {
    const int64_t row = index_of(program.partition.shard(rank), position);
    if (row >= 0) return {rank, row};
  }
  throw_usage("no rank holds token " + std::to_string(position));
}

float CpuExecutor::Impl::lse_at(int64_t batch, int64_t head, int64_t position) const {
  const auto [home, row] = place_of(position);
  const auto home_lse = [&, home = home, row = row] {
    const RankMemory& memory = ranks[static_cast<size_t>(home)]->memory;
    return memory.lse.as<float>()[(batch * program.problem.heads + head) * memory.rows + row];
  };
  if (!has_forward(program.problem.pass)) return home_lse();  // It was taken over.
  for (const Finalized& done : finalized) {
    const Op& op = *done.op;
    if (head < op.head_begin || head >= op.head_end) continue;
    if (op.buffer == kHomeBuffer && (done.rank != home || row < op.q_begin || row >= op.q_end))
      continue;
    const RankMemory& memory = ranks[static_cast<size_t>(done.rank)]->memory;
    if (op.buffer == kHomeBuffer) return home_lse();
    const int64_t there = index_of(program.tokens_of(op.q_shard), position);
    if (there < op.q_begin || there >= op.q_end) continue;
    const KvBuffer& buffer = memory.buffer(op.buffer);
    const int64_t first = batch * buffer.query_heads.count() + head - buffer.query_heads.begin;
    return buffer.v.as<float>()[first * buffer.tokens + op.q_at + there - op.q_begin];
  }
  throw_usage("no op writes the result of token " + std::to_string(position));
}

std::span<const std::byte> CpuExecutor::output_bytes(int64_t batch, int64_t position) const {
  const Problem& problem = impl_->program.problem;
  RING_ASSERT(impl_->program.has_attention && batch >= 0 && batch < problem.batch);
  const auto [rank, row] = impl_->place_of(position);
  const RankMemory& memory = impl_->ranks[static_cast<size_t>(rank)]->memory;
  const Bytes bytes = problem.heads * problem.head_dim_v * size_bytes(problem.dtype);
  return {memory.out.data() + (row * problem.batch + batch) * bytes, static_cast<size_t>(bytes)};
}

void CpuExecutor::read_output(int64_t batch, int64_t position, std::span<float> out,
                              std::span<float> lse) const {
  const Problem& problem = impl_->program.problem;
  const std::span<const std::byte> bytes = output_bytes(batch, position);
  RING_ASSERT(static_cast<int64_t>(out.size()) == problem.heads * problem.head_dim_v);
  RING_ASSERT(static_cast<int64_t>(lse.size()) == problem.heads);
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = load_element(problem.dtype, bytes.data(), static_cast<int64_t>(i));
  for (int64_t head = 0; head < problem.heads; ++head)
    lse[static_cast<size_t>(head)] = impl_->lse_at(batch, head, position);
}

std::span<const float> CpuExecutor::Impl::gradients(Payload payload, int part, int64_t batch,
                                                    int64_t position) const {
  RING_ASSERT(program.has_attention && has_backward(program.problem.pass));
  const auto [home, home_row] = place_of(position);
  const int64_t batches = program.problem.batch;
  const TensorView own =
      ranks[static_cast<size_t>(home)]->memory.tensor(payload, part, kHomeBuffer);
  const auto width = static_cast<size_t>(own.heads.count() * own.dim);
  if (program.rank_programs[static_cast<size_t>(home)].storage.has_home_inputs) {
    const float* const values = reinterpret_cast<const float*>(own.data);
    return {values + own.at(home_row, batch, batches, 0), width};
  }
  std::vector<float>& whole =
      assembled[payload == Payload::kQueryGradients ? 0 : static_cast<size_t>(1 + part)];
  whole.resize(width);
  for (int rank = 0; rank < program.ranks(); ++rank) {
    const RankStorage& storage = program.rank_programs[static_cast<size_t>(rank)].storage;
    for (size_t i = 0; i < storage.shaped_buffers.size(); ++i) {
      const BufferShape& shape = storage.shaped_buffers[i];
      if (shape.payload != payload || shape.filled_with < 0) continue;
      const TensorView some = ranks[static_cast<size_t>(rank)]->memory.tensor(
          payload, part, storage.buffers + static_cast<int32_t>(i));
      const int64_t row = index_of(program.tokens_of(shape.filled_with), position);
      if (row < 0) continue;
      const float* const from = reinterpret_cast<const float*>(some.data) +
                                some.at(row, batch, batches, some.heads.begin);
      std::copy(from, from + some.heads.count() * some.dim,
                whole.begin() + some.heads.begin * some.dim);
    }
  }
  return whole;
}

std::span<const float> CpuExecutor::query_gradients(int64_t batch, int64_t position) const {
  return impl_->gradients(Payload::kQueryGradients, 0, batch, position);
}

std::span<const float> CpuExecutor::key_gradients(int64_t batch, int64_t position) const {
  return impl_->gradients(Payload::kKeyGradients, 0, batch, position);
}

std::span<const float> CpuExecutor::value_gradients(int64_t batch, int64_t position) const {
  return impl_->gradients(Payload::kKeyGradients, 1, batch, position);
}

}  // namespace ring
