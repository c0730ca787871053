// What a GpuExecutor reads after a run: times, outputs, gradients.
#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "kernels/cuda/gpu_executor_impl.h"
#include "kernels/cuda/shard_data.h"

namespace ring::cuda {

/// Transfers are posted when what they wait for on their own rank is done.
void GpuExecutor::Impl::fill_posted(size_t first_slice, int rank) {
  const RankProgram& rank_program = program.rank_programs[static_cast<size_t>(rank)];
  std::vector<std::vector<Picoseconds>> ends(static_cast<size_t>(program.lanes));
  for (size_t i = 0; i < rank_program.ops.size(); ++i)
    ends[static_cast<size_t>(rank_program.ops[i].lane)].push_back(
        timeline.slices[first_slice + i].end_ps);
  const auto end_at = [&](int lane, int64_t position) {
    return ends[static_cast<size_t>(lane)][static_cast<size_t>(position)];
  };
  for (size_t i = 0; i < rank_program.ops.size(); ++i) {
    const Op& op = rank_program.ops[i];
    if (op.kind != OpKind::kSend && op.kind != OpKind::kReceive) continue;
    Picoseconds posted = op.lane_position > 0 ? end_at(op.lane, op.lane_position - 1) : 0;
    for (const LanePoint& point : rank_program.deps_of(op))
      posted = std::max(posted, end_at(point.lane, point.position));
    Slice& slice = timeline.slices[first_slice + i];
    slice.posted_ps = std::min(posted, slice.start_ps);
  }
}

void GpuExecutor::Impl::collect() {
  timeline.slices.clear();
  const auto time_of = [&](int stamp) {
    return std::max<Picoseconds>(0, picoseconds_from_seconds(runtime.stamp_s(stamp)));
  };
  for (int rank = 0; rank < program.ranks(); ++rank) {
    if (!is_local(rank)) continue;
    const std::vector<Op>& ops = program.rank_programs[static_cast<size_t>(rank)].ops;
    const size_t first_slice = timeline.slices.size();
    for (size_t i = 0; i < ops.size(); ++i) {
      Slice slice = slice_of(program, {rank, static_cast<int64_t>(i)});
      const OpStamps& at = stamps_of(slice.op);
      slice.start_ps = slice.posted_ps = time_of(at.begin);
      slice.end_ps = std::max(slice.start_ps, time_of(at.end));
      timeline.slices.push_back(slice);
    }
    fill_posted(first_slice, rank);
  }
  sort_slices(timeline);
}

/// The log-sum-exp is kept where the op that finalizes the row and head puts it: at home, or with
/// the rank that computed it.
float GpuExecutor::Impl::read_lse(int64_t batch, int64_t head, int64_t position,
                                  const TokenPlace& place) const {
  for (int rank = 0; rank < program.ranks(); ++rank) {
    if (!is_local(rank)) continue;
    for (const Op& op : program.rank_programs[static_cast<size_t>(rank)].ops) {
      if (op.kind != OpKind::kFinalize || op.payload == Payload::kPartial) continue;
      if (head < op.head_begin || head >= op.head_end) continue;
      if (op.buffer == kHomeBuffer && rank != place.rank) continue;
      const int64_t row =
          op.buffer == kHomeBuffer ? place.row : index_of(program.tokens_of(op.q_shard), position);
      if (row < op.q_begin || row >= op.q_end) continue;
      return local(rank).read_lse(op, batch, head, row);
    }
  }
  throw_usage(fmt::format("no op writes the result of token {}", position));
}

void GpuExecutor::read_output(int64_t batch, int64_t position, std::span<float> out,
                              std::span<float> lse) const {
  const Problem& problem = impl_->program.problem;
  const TokenPlace place = place_of(impl_->program.partition, position);
  if (!impl_->is_local(place.rank))
    throw_usage(fmt::format("another process holds token {}", position));
  std::vector<std::byte> bytes(out.size() * static_cast<size_t>(size_bytes(problem.dtype)));
  impl_->local(place.rank).read_row(batch, place.row, bytes);
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = load_element(problem.dtype, bytes.data(), static_cast<int64_t>(i));
  for (size_t head = 0; head < lse.size(); ++head)
    lse[head] = impl_->read_lse(batch, static_cast<int64_t>(head), position, place);
}

/// Where ranks hold heads, those of all are put together.
std::span<const float> GpuExecutor::Impl::gradients(Payload payload, int part, int64_t batch,
                                                    int64_t position,
                                                    std::vector<float>& values) const {
  const Problem& problem = program.problem;
  RING_ASSERT(program.has_attention && has_backward(problem.pass));
  const int64_t heads = payload == Payload::kQueryGradients ? problem.heads : problem.kv_heads;
  values.resize(static_cast<size_t>(heads * (part == 1 ? problem.head_dim_v : problem.head_dim)));
  const TokenPlace place = place_of(program.partition, position);
  if (!is_local(place.rank)) throw_usage(fmt::format("another process holds token {}", position));
  if (program.rank_programs[static_cast<size_t>(place.rank)].storage.has_home_inputs) {
    local(place.rank).read_gradients(payload, part, kHomeBuffer, batch, place.row, values);
    return values;
  }
  for (int rank = 0; rank < program.ranks(); ++rank) {
    const RankStorage& storage = program.rank_programs[static_cast<size_t>(rank)].storage;
    for (size_t i = 0; i < storage.shaped_buffers.size() && is_local(rank); ++i) {
      const BufferShape& shape = storage.shaped_buffers[i];
      if (shape.payload != payload || shape.filled_with < 0) continue;
      const int64_t row = index_of(program.tokens_of(shape.filled_with), position);
      if (row < 0) continue;
      local(rank).read_gradients(payload, part, storage.buffers + static_cast<int32_t>(i), batch,
                                 row, values);
    }
  }
  return values;
}

std::span<const float> GpuExecutor::query_gradients(int64_t batch, int64_t position) const {
  return impl_->gradients(Payload::kQueryGradients, 0, batch, position, impl_->dq);
}
std::span<const float> GpuExecutor::key_gradients(int64_t batch, int64_t position) const {
  return impl_->gradients(Payload::kKeyGradients, 0, batch, position, impl_->dk);
}
std::span<const float> GpuExecutor::value_gradients(int64_t batch, int64_t position) const {
  return impl_->gradients(Payload::kKeyGradients, 1, batch, position, impl_->dv);
}

}  // namespace ring::cuda
