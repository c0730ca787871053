#include "core/strategies/attend_op.h"

#include "core/error.h"

namespace ring {
namespace {

StateTree tree_of(const Problem& problem, const Tuning& tuning, const Partition& partition,
                  int rank) {
  std::vector<bool> is_seen;
  for (int64_t begin = 0; begin < problem.seq_len(); begin += tuning.block_tokens) {
    const AffineRange chunk{begin, std::min(tuning.block_tokens, problem.seq_len() - begin), 1};
    is_seen.push_back(problem.mask.count_visible(partition.shard(rank), {chunk}) > 0);
  }
  return StateTree(std::move(is_seen));
}

}  // namespace

AttendWriter::AttendWriter(const Problem& problem, const Tuning& tuning, const Partition& partition,
                           int rank)
    : problem_(problem), tuning_(tuning), partition_(partition), rank_(rank) {
  if (tuning.is_deterministic) tree_ = tree_of(problem, tuning, partition, rank);
}

Op AttendWriter::row_op(OpKind kind) const {
  Op op;
  op.kind = kind;
  op.lane = kComputeLane;
  op.q_shard = rank_;
  op.q_end = partition_.shard_tokens(rank_);
  op.head_end = static_cast<int32_t>(problem_.heads);
  return op;
}

Bytes AttendWriter::state_bytes() const {
  return problem_.batch * problem_.heads * partition_.shard_tokens(rank_) *
         (problem_.head_dim_v + 2) * 4;
}

BlockCounts AttendWriter::count(const AttendPlace& place) const {
  const TokenRanges keys = slice(partition_.shard(place.shard), place.keys.begin, place.keys.end);
  return problem_.mask.count_block(partition_.shard(rank_), keys);
}

std::optional<LanePoint> AttendWriter::append(const AttendPlace& place,
                                              std::span<const LanePoint> deps, OpWriter& writer,
                                              OpBatch& batch) {
  const BlockCounts counts = count(place);
  if (counts.visible_pairs == 0) return std::nullopt;
  Op op = row_op(OpKind::kAttend);
  op.step = place.step;
  op.buffer = place.buffer;
  op.buffer_begin = place.buffer_begin;
  op.kv_shard = place.shard;
  op.kv_begin = place.keys.begin;
  op.kv_end = place.keys.end;
  op.visible_pairs = counts.visible_pairs;
  op.active_rows = counts.active_rows;
  op.edge_rows = counts.edge_rows;
  op.flops = problem_.flops(counts.visible_pairs);
  op.state = tree_ ? tree_->acquire() : 0;
  op.starts_state = tree_.has_value() || !is_started_;
  is_started_ = true;
  const LanePoint point = writer.append(op, deps, batch);
  if (!tree_) return point;
  const TokenRanges first =
      slice(partition_.shard(place.shard), place.keys.begin, place.keys.begin + 1);
  for (const StateTree::Merge& merge :
       tree_->add(first.front().begin / tuning_.block_tokens, op.state)) {
    Op merge_op = row_op(OpKind::kMerge);
    merge_op.step = place.step;
    merge_op.state = merge.state;
    merge_op.source_state = merge.source_state;
    merge_op.bytes = 3 * state_bytes();  // Two states are read, one is written.
    writer.append(merge_op, {}, batch);
  }
  return point;
}

void AttendWriter::finalize(OpWriter& writer, OpBatch& batch) {
  if (partition_.shard_tokens(rank_) == 0) return;
  Op op = row_op(OpKind::kFinalize);
  op.state = tree_ ? std::max(tree_->root(), 0) : 0;
  op.starts_state = !is_started_;
  const Bytes output_bytes = problem_.batch * problem_.heads * partition_.shard_tokens(rank_) *
                             (problem_.head_dim_v * size_bytes(problem_.dtype) + 4);
  op.bytes = state_bytes() + output_bytes;
  writer.append(op, {}, batch);
}

}  // namespace ring
