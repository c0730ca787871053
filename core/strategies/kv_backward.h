// KvBackward: the backward phase of one rank; one side travels by a routing, its gradients follow.
#pragma once

#include <optional>
#include <vector>

#include "core/strategies/gradient_ways.h"
#include "core/strategies/rank_tracks.h"

namespace ring {

/// At every step the rank computes its share of the gradients of the message that is there into a
/// gradient buffer, adds what the rank before has gathered, and sends the sum on: it arrives one
/// step after the message itself, so both are hidden behind the computation of a step. The last
/// rank sends the sum to the owner, which adds it to its own share. Gradients of the side that
/// stays are summed at home.
class KvBackward {
 public:
  struct Numbers {
    int64_t first_message = 0;  ///< Of what travels; its gradients are numbered after it.
    bool resets = true;         ///< Whether gradients start from zero.
  };
  /// All references must outlive the phase.
  KvBackward(const KvPlan& plan, const KvRouting& routing, const GradientWays& ways, int rank,
             RankTracks& tracks, Numbers numbers);

  /// Appends ops, a few at a time; false when there are no more.
  bool next(OpBatch& batch);

 private:
  /// A part of a message and where it lies.
  struct Place {
    int shard = 0;
    KeySlice part;
    int32_t buffer = kHomeBuffer;
    int64_t at = 0;  ///< Row of the buffer of the first token.
    int32_t gradients = kHomeBuffer;
  };

  void advance(OpBatch& batch);
  void delta(OpBatch& batch);
  void own_message(OpBatch& batch);
  void received_message(int shard, const Hop& from, OpBatch& batch);
  void gradients(int shard, const Place& place, std::optional<LanePoint> computed, OpBatch& batch);
  void gradients_home(OpBatch& batch);
  Readers pass_on(const Place& place, std::span<const LanePoint> deps, OpBatch& batch);
  std::optional<LanePoint> compute(const Place& place, std::span<const LanePoint> deps,
                                   OpBatch& batch);
  Op pairs_op(const Place& place, KeySlice block) const;
  Op transfer_op(OpKind kind, Payload payload, const Place& place) const;
  /// Receives gradients into the next buffer of a track.
  LanePoint receive_gradients(const Place& place, int from, int track, OpBatch& batch);
  LanePoint add(const Place& place, int32_t source, LanePoint arrived, OpBatch& batch);
  void set_part(Op& op, int shard, KeySlice part) const;

  const KvPlan& plan_;
  const KvRouting& routing_;
  const GradientWays& ways_;
  const int rank_;
  RankTracks& tracks_;
  const Numbers numbers_;
  std::vector<Hop> hops_;
  std::optional<LanePoint> delta_;
  int group_ = 0;  ///< Of heads.
  int64_t round_ = 0;
  int step_ = -1;
  bool is_begun_ = false;
};

}  // namespace ring
