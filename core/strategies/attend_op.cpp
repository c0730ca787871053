#include "core/strategies/attend_op.h"

#include "core/error.h"

namespace ring {

StateTree tree_of(const Problem& problem, const Tuning& tuning, const TokenRanges& rows) {
  std::vector<bool> is_seen;
  for (int64_t begin = 0; begin < problem.seq_len(); begin += tuning.block_tokens) {
    const AffineRange chunk{begin, std::min(tuning.block_tokens, problem.seq_len() - begin), 1};
    is_seen.push_back(problem.mask.count_visible(rows, {chunk}) > 0);
  }
  return StateTree(std::move(is_seen));
}

AttendWriter::AttendWriter(const Problem& problem, const Tuning& tuning, const Partition& partition,
                           int rank)
    : AttendWriter(problem, tuning, partition,
                   RowPlace{rank, {0, partition.shard_tokens(rank)}, kHomeBuffer, 0, 0}) {}

AttendWriter::AttendWriter(const Problem& problem, const Tuning& tuning, const Partition& partition,
                           const RowPlace& rows)
    : problem_(problem),
      tuning_(tuning),
      partition_(partition),
      rows_(rows),
      heads_(query_heads(problem, static_cast<int32_t>(rows.heads.begin),
                         static_cast<int32_t>(rows.heads.end))) {
  if (tuning.is_deterministic) tree_ = tree_of(problem, tuning, row_tokens());
}

TokenRanges AttendWriter::row_tokens() const {
  return slice(partition_.shard(rows_.shard), rows_.rows.begin, rows_.rows.end);
}

Op AttendWriter::row_op(OpKind kind) const {
  Op op;
  op.kind = kind;
  op.lane = kComputeLane;
  op.q_shard = rows_.shard;
  op.q_begin = rows_.rows.begin;
  op.q_end = rows_.rows.end;
  op.head_begin = static_cast<int32_t>(heads_.begin);
  op.head_end = static_cast<int32_t>(heads_.end);
  op.state = rows_.state;
  return op;
}

Bytes AttendWriter::bytes_of_state() const {
  return state_bytes(problem_, heads_, rows_.rows.end - rows_.rows.begin);
}

BlockCounts AttendWriter::count(const AttendPlace& place) const {
  const TokenRanges keys = slice(partition_.shard(place.shard), place.keys.begin, place.keys.end);
  return problem_.mask.count_block(row_tokens(), keys);
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
  op.flops = problem_.flops(counts.visible_pairs) / problem_.heads * heads_.count();
  op.q_buffer = rows_.buffer;
  op.q_at = rows_.at;
  op.state = rows_.state + (tree_ ? tree_->acquire() : 0);
  op.starts_state = tree_.has_value() || !is_started_;
  is_started_ = true;
  const LanePoint point = writer.append(op, deps, batch);
  if (!tree_) return point;
  used_[op.state] = point;
  const TokenRanges first =
      slice(partition_.shard(place.shard), place.keys.begin, place.keys.begin + 1);
  append_merges(tree_->add(first.front().begin / tuning_.block_tokens, op.state - rows_.state),
                place.step, writer, batch);
  return point;
}

void AttendWriter::append_merges(const std::vector<StateTree::Merge>& merges, int32_t step,
                                 OpWriter& writer, OpBatch& batch) {
  for (const StateTree::Merge& merge : merges) {
    Op op = row_op(OpKind::kMerge);
    op.step = step;
    op.state = rows_.state + merge.state;
    op.source_state = rows_.state + merge.source_state;
    op.bytes = 3 * bytes_of_state();  // Two states are read, one is written.
    std::vector<LanePoint> deps = arrival_of(op.state);
    for (const LanePoint& point : arrival_of(op.source_state)) deps.push_back(point);
    used_[op.state] = used_[op.source_state] = writer.append(op, deps, batch);
  }
}

std::vector<LanePoint> AttendWriter::last_use(int32_t state) const {
  const auto found = used_.find(state);
  if (found == used_.end()) return {};
  return {found->second};
}

std::vector<LanePoint> AttendWriter::arrival_of(int32_t state) {
  const auto found = arrived_.find(state);
  if (found == arrived_.end()) return {};
  const LanePoint point = found->second;
  arrived_.erase(found);
  return {point};
}

void AttendWriter::merge_node(StateTree::Node node, int32_t step, LanePoint arrived,
                              OpWriter& writer, OpBatch& batch) {
  arrived_[node.state] = arrived;
  node.state -= rows_.state;
  is_started_ = true;
  append_merges(tree_->add(node), step, writer, batch);
}

std::vector<StateTree::Node> AttendWriter::nodes() const {
  std::vector<StateTree::Node> nodes = tree_->held();
  for (StateTree::Node& node : nodes) node.state += rows_.state;
  return nodes;
}

LanePoint AttendWriter::merge(int32_t source_state, int32_t step, std::span<const LanePoint> deps,
                              OpWriter& writer, OpBatch& batch) {
  RING_ASSERT(!tree_);
  Op op = row_op(OpKind::kMerge);
  op.step = step;
  op.source_state = source_state;
  op.starts_state = !is_started_;
  op.bytes = 3 * bytes_of_state();
  is_started_ = true;
  return writer.append(op, deps, batch);
}

Op AttendWriter::finalize_op() const {
  Op op = row_op(OpKind::kFinalize);
  op.state = rows_.state + (tree_ ? std::max(tree_->root(), 0) : 0);
  op.starts_state = !is_started_;
  return op;
}

void AttendWriter::finalize(OpWriter& writer, OpBatch& batch) {
  const int64_t rows = rows_.rows.end - rows_.rows.begin;
  if (rows == 0) return;
  Op op = finalize_op();
  op.q_at = rows_.rows.begin;
  const Bytes output_bytes = problem_.batch * heads_.count() * rows *
                             (problem_.head_dim_v * size_bytes(problem_.dtype) + 4);
  op.bytes = bytes_of_state() + output_bytes;
  writer.append(op, arrival_of(op.state), batch);
}

LanePoint AttendWriter::finalize_partial(int32_t step, OpWriter& writer, OpBatch& batch) {
  Op op = finalize_op();
  op.payload = Payload::kPartial;
  op.step = step;
  op.bytes = 2 * bytes_of_state();
  return writer.append(op, {}, batch);
}

}  // namespace ring
