// QueryForward: the forward phase of one rank in a ring in which queries travel.
#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "core/strategies/forward_phase.h"
#include "core/strategies/query_plan.h"
#include "core/strategies/rank_tracks.h"

namespace ring {

class QueryForward : public ForwardPhase {
 public:
  /// Both must outlive the phase. Query buffers are numbered from `first_buffer` on.
  QueryForward(const QueryPlan& plan, int rank, RankTracks& tracks, int32_t first_buffer);
  void begin(int64_t first_message) override;
  bool next(OpBatch& batch) override;

 private:
  /// A partial result that this rank gives, or waits for.
  struct Partial {
    int shard = 0;
    int64_t m = 0;
    int step = 0, peer = 0;
    int32_t state = 0;  ///< The first of the slot.
    std::optional<LanePoint> ready;
    std::vector<StateTree::Node> nodes = {};  ///< Deterministic: what is given.
  };

  void advance(OpBatch& batch);
  void own_message(OpBatch& batch);
  void received_message(int shard, OpBatch& batch);
  /// Attends the rows of another rank and turns the state into a partial result for it.
  LanePoint answer(int shard, KeySlice rows, int32_t buffer, LanePoint arrived, OpBatch& batch);
  /// At this step another rank works on a message of this one; its answer will come.
  void expect_answer();
  /// Receives and merges what is awaited, all but the last `keep` answers: those are still under
  /// way, and merging them now would hold up computation.
  void collect_answers(size_t keep, OpBatch& batch);
  /// Nodes are received into free states of the own tree.
  void collect_nodes(const Partial& partial, OpBatch& batch);
  void finish(OpBatch& batch);
  Readers give(const Partial& partial, OpBatch& batch);
  Op node_op(OpKind kind, const Partial& partial, int32_t state, int64_t number) const;
  Op partial_op(OpKind kind, const Partial& partial) const;
  Op query_op(OpKind kind, int shard, KeySlice rows, int32_t buffer) const;
  Readers pass_on(int shard, KeySlice rows, int32_t buffer, std::span<const LanePoint> deps,
                  OpBatch& batch);
  void attend(AttendWriter& attends, std::span<const LanePoint> deps, OpBatch& batch);

  const QueryPlan& plan_;
  const int rank_;
  RankTracks& tracks_;
  OpWriter& writer_;
  const int32_t first_buffer_;
  int64_t first_message_ = 0;
  std::deque<AttendWriter> own_;  ///< By own message.
  std::vector<Readers> buffers_;  ///< What must have read a query buffer before it is free again.
  std::vector<Readers> foreign_, answers_;  ///< The same of states.
  Readers finished_;                        ///< The end of the pass before this one.
  std::vector<Partial> given_;
  std::deque<Partial> awaited_;
  int64_t received_ = 0, answered_ = 0, expected_ = 0;
  int64_t round_ = 0;
  int step_ = -1;
  bool is_finished_ = false;
};

}  // namespace ring
