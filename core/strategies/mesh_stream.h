// MeshStream: the ops of one rank in a program of head_split.h.
#pragma once

#include <set>
#include <tuple>

#include "core/strategies/buffer_order.h"
#include "core/strategies/head_mesh_plan.h"
#include "core/strategies/rows_op.h"

namespace ring {

class MeshStream : public RankStream {
 public:
  /// The plan must outlive the stream.
  MeshStream(const MeshPlan& plan, int lanes, int rank);
  bool next(OpBatch& batch) override;

 private:
  /// Of each of the two passes, as often as gradients are accumulated.
  enum class Stage { kIn, kRing, kOut, kGap, kEnd };

  void advance(OpBatch& batch);
  void begin_ring();
  void end_pass();

  // Everybody sends to the k-th mate after it and receives from the k-th before it.

  void send_in(Payload payload, OpBatch& batch);
  void receive_in(Payload payload, OpBatch& batch);
  void send_out(Payload payload, OpBatch& batch);
  void receive_out(Payload payload, OpBatch& batch);

  /// A buffer, and whose order its rows have.
  struct Rows {
    int32_t buffer = kHomeBuffer;
    int32_t order = -1;
  };
  Rows gathered(Payload payload) const;
  /// The first to bring some heads of a gradient sets it, all others add to it.
  void bring_home(Payload payload, HeadRange heads, Rows source, OpBatch& batch);
  bool is_first(Payload payload, HeadRange heads);

  /// The next ops of the ring over groups, in terms of this mesh.
  bool ring_ops(OpBatch& batch);
  Op mapped(Op op) const;
  /// More than one phase of the ring has.
  int64_t ring_messages() const;
  void name_buffers(Op& op) const;
  void name_buffers_of_delta(Op& op) const;
  Op row_op(OpKind kind, Payload payload, int shard, HeadRange heads) const;
  /// Transfers and adds name keys where copies name rows.
  static void name_keys(Op& op);
  /// Moves all rows of a shard between buffers.
  void copy(Payload payload, int shard, HeadRange heads, Rows source, Rows target, OpBatch& batch);
  void transfer(OpKind kind, Payload payload, int mate, int shard, HeadRange heads, int32_t buffer,
                int64_t row, OpBatch& batch);
  void append(const Op& op, Readers deps, OpBatch& batch);
  void append_ordered(const Op& op, const Readers& deps, OpBatch& batch);

  const MeshPlan& plan_;
  const int rank_;
  const MeshBuffers buffers_;
  OpWriter writer_;
  BufferOrder order_;
  std::unique_ptr<RankStream> ring_;
  std::vector<int64_t> appended_, before_ring_;       ///< Ops by lane, so far and before the phase.
  std::set<std::tuple<int32_t, int32_t, bool>> met_;  ///< Buffer, lane, writes; of the phase.
  std::set<std::pair<Payload, int64_t>> brought_;     ///< Heads of gradients that are at home.
  int64_t sent_ = 0, received_ = 0;
  Stage stage_ = Stage::kIn;
  bool is_backward_ = false;
  int32_t micro_step_ = 0;
};

}  // namespace ring
