// KvForward: the forward phase of one rank in a program in which keys travel by a routing.
#pragma once

#include <optional>
#include <vector>

#include "core/strategies/attend_op.h"
#include "core/strategies/kv_routing.h"
#include "core/strategies/rank_tracks.h"

namespace ring {

class KvForward {
 public:
  /// Messages are numbered from `first_message` on. All references must outlive the phase.
  KvForward(const KvPlan& plan, const KvRouting& routing, int rank, RankTracks& tracks,
            int64_t first_message);

  /// Appends ops, a few at a time; false when there are no more.
  bool next(OpBatch& batch);
  int32_t states() const { return attends_.states(); }

 private:
  void advance(OpBatch& batch);
  void own_message(OpBatch& batch);
  void received_message(int shard, const Hop& from, OpBatch& batch);
  LanePoint receive(int shard, KeySlice keys, int32_t buffer, const Hop& from,
                    const Readers& readers, OpBatch& batch);
  Readers pass_on(int shard, KeySlice keys, int32_t buffer, std::span<const LanePoint> deps,
                  OpBatch& batch);
  Op transfer_op(OpKind kind, int shard, KeySlice keys, int32_t buffer) const;
  std::optional<LanePoint> attend(int shard, KeySlice keys, int32_t buffer,
                                  std::span<const LanePoint> deps, OpBatch& batch);

  const KvPlan& plan_;
  const KvRouting& routing_;
  const int rank_;
  RankTracks& tracks_;
  const int64_t first_message_;
  AttendWriter attends_;
  std::vector<Hop> hops_;
  int64_t round_ = 0;
  int step_ = -1;
  bool is_finished_ = false;
};

}  // namespace ring
