// Writes the attention side of a rank's program: attend, merge and finalize ops with exact counts.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <vector>

#include "core/payload.h"
#include "core/ring_program.h"
#include "core/strategies/shard_messages.h"
#include "core/strategies/state_tree.h"

namespace ring {

/// Which keys an attention op works on and where they lie.
struct AttendPlace {
  int shard = 0;
  KeySlice keys;
  int32_t buffer = kHomeBuffer;
  int64_t buffer_begin = 0;
  int32_t step = 0;
};

/// The query rows that ops work on, where they lie, and the state that they continue.
struct RowPlace {
  int shard = 0;
  KeySlice rows;  ///< In local order of the shard.
  int32_t buffer = kHomeBuffer;
  int64_t at = 0;        ///< Row of the buffer of the first one.
  int32_t state = 0;     ///< The first of the states that are used.
  HeadRange heads = {};  ///< 0..0: all.
};

/// Query rows attend to blocks of keys: into one running state, or, when the
/// tuning is deterministic, into a state per block that is merged in the fixed tree.
class AttendWriter {
 public:
  /// All rows of the rank.
  AttendWriter(const Problem& problem, const Tuning& tuning, const Partition& partition, int rank);
  AttendWriter(const Problem& problem, const Tuning& tuning, const Partition& partition,
               const RowPlace& rows);

  /// Appends the op of one block; none when the rows see none of its keys.
  std::optional<LanePoint> append(const AttendPlace& place, std::span<const LanePoint> deps,
                                  OpWriter& writer, OpBatch& batch);
  /// Appends the op that merges the partial result `source_state` of the same rows.
  LanePoint merge(int32_t source_state, int32_t step, std::span<const LanePoint> deps,
                  OpWriter& writer, OpBatch& batch);
  /// Deterministic: a free state for a node of the tree that is received.
  int32_t take_state() { return rows_.state + tree_->acquire(); }
  /// The last op that touched the state, if any did.
  std::vector<LanePoint> last_use(int32_t state) const;
  /// Appends the merges that become possible when a node has arrived in its state.
  void merge_node(StateTree::Node node, int32_t step, LanePoint arrived, OpWriter& writer,
                  OpBatch& batch);
  /// Deterministic: the nodes that are there, and the states they lie in.
  std::vector<StateTree::Node> nodes() const;
  /// Appends the op that writes the output of the rank, unless there is no row.
  void finalize(OpWriter& writer, OpBatch& batch);
  /// Appends the op that turns the state into a partial result.
  LanePoint finalize_partial(int32_t step, OpWriter& writer, OpBatch& batch);
  int32_t states() const { return tree_ ? std::max(tree_->states(), 1) : 1; }
  /// Whether any op has continued the state.
  bool is_started() const { return is_started_; }

 private:
  Op row_op(OpKind kind) const;
  void append_merges(const std::vector<StateTree::Merge>& merges, int32_t step, OpWriter& writer,
                     OpBatch& batch);
  /// What an op that reads the state has to wait for.
  std::vector<LanePoint> arrival_of(int32_t state);
  Op finalize_op() const;
  TokenRanges row_tokens() const;
  Bytes bytes_of_state() const;
  BlockCounts count(const AttendPlace& place) const;

  const Problem& problem_;
  const Tuning& tuning_;
  const Partition& partition_;
  const RowPlace rows_;
  const HeadRange heads_;
  std::optional<StateTree> tree_;
  std::map<int32_t, LanePoint> arrived_;  ///< Of states that nothing has read since.
  std::map<int32_t, LanePoint> used_;     ///< Deterministic: who touched a state last.
  bool is_started_ = false;
};

/// The fixed tree over the blocks of the sequence for these rows.
StateTree tree_of(const Problem& problem, const Tuning& tuning, const TokenRanges& rows);

}  // namespace ring
