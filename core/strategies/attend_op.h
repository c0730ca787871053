// Writes the attention side of a rank's program: attend, merge and finalize ops with exact counts.
#pragma once

#include <optional>
#include <span>

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

/// All query rows and heads of one rank attend to blocks of keys: into one running state, or, when
/// the tuning is deterministic, into a state per block that is merged in the fixed tree.
class AttendWriter {
 public:
  AttendWriter(const Problem& problem, const Tuning& tuning, const Partition& partition, int rank);

  /// Appends the op of one block; none when the rank sees none of its keys.
  std::optional<LanePoint> append(const AttendPlace& place, std::span<const LanePoint> deps,
                                  OpWriter& writer, OpBatch& batch);
  /// Appends the op that writes the output, unless the rank holds no query.
  void finalize(OpWriter& writer, OpBatch& batch);
  int32_t states() const { return tree_ ? std::max(tree_->states(), 1) : 1; }

 private:
  Op row_op(OpKind kind) const;
  Bytes state_bytes() const;
  BlockCounts count(const AttendPlace& place) const;

  const Problem& problem_;
  const Tuning& tuning_;
  const Partition& partition_;
  const int rank_;
  std::optional<StateTree> tree_;
  bool is_started_ = false;
};

}  // namespace ring
