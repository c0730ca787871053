// KvForward: the forward phase of one rank in a program in which keys travel by a routing.
#pragma once

#include <optional>
#include <vector>

#include "core/strategies/attend_op.h"
#include "core/strategies/forward_phase.h"
#include "core/strategies/kv_routing.h"
#include "core/strategies/rank_tracks.h"

namespace ring {

class KvForward : public ForwardPhase {
 public:
  /// All references must outlive the phase.
  KvForward(const KvPlan& plan, const KvRouting& routing, int rank, RankTracks& tracks);

  void begin(int64_t first_message) override;
  bool next(OpBatch& batch) override;
  int32_t states() const override { return states_; }

 private:
  void advance(OpBatch& batch);
  void begin_group(OpBatch& batch);
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
  int64_t first_message_ = 0;
  std::optional<AttendWriter> attends_;
  int32_t states_ = 1;
  std::vector<Hop> hops_;
  int group_ = 0;  ///< Of heads.
  int64_t round_ = 0;
  int step_ = -1;
};

}  // namespace ring
