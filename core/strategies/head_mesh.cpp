// The programs of head_split.h: an all-to-all in, a ring of gathered keys, an all-to-all back; and
// the same for the gradients.
#include <algorithm>
#include <set>
#include <tuple>

#include "core/error.h"
#include "core/strategies/backward_op.h"
#include "core/strategies/buffer_order.h"
#include "core/strategies/head_mesh_plan.h"
#include "core/strategies/rows_op.h"

namespace ring {
namespace {

class MeshStream : public RankStream {
 public:
  MeshStream(const MeshPlan& plan, int lanes, int rank)
      : plan_(plan),
        rank_(rank),
        buffers_(plan, rank),
        writer_(lanes),
        appended_(static_cast<size_t>(lanes), 0),
        is_backward_(!has_forward(plan.problem.pass)) {}

  bool next(OpBatch& batch) override {
    const size_t before = batch.ops.size();
    while (batch.ops.size() == before && stage_ != Stage::kEnd) {
      const int32_t step = micro_step_;
      advance(batch);
      for (size_t i = before; i < batch.ops.size(); ++i) batch.ops[i].micro_step = step;
    }
    return batch.ops.size() > before;
  }

 private:
  /// Of each of the two passes, as often as gradients are accumulated.
  enum class Stage { kIn, kRing, kOut, kGap, kEnd };

  void advance(OpBatch& batch) {
    switch (stage_) {
      case Stage::kIn:
        for (const Payload payload : payloads_in(plan_, is_backward_)) send_in(payload, batch);
        for (const Payload payload : payloads_in(plan_, is_backward_)) receive_in(payload, batch);
        begin_ring();
        return;
      case Stage::kRing:
        if (!ring_ops(batch)) stage_ = Stage::kOut;
        return;
      case Stage::kOut:
        for (const Payload payload : payloads_out(plan_, is_backward_)) send_out(payload, batch);
        for (const Payload payload : payloads_out(plan_, is_backward_)) receive_out(payload, batch);
        end_pass();
        return;
      case Stage::kGap:
        append_optimizer_gap(plan_.tuning, writer_, batch);
        stage_ = Stage::kEnd;
        return;
      case Stage::kEnd:
        return;
    }
  }

  void begin_ring() {
    stage_ = Stage::kRing;
    ring_ = plan_.ring_of(rank_, is_backward_).stream(plan_.group_of(rank_));
    before_ring_ = appended_;
    met_.clear();
  }

  void end_pass() {
    const Pass pass = plan_.problem.pass;
    stage_ = Stage::kIn;
    if (!is_backward_ && has_backward(pass)) {
      is_backward_ = true;
      return;
    }
    is_backward_ = !has_forward(pass);
    if (++micro_step_ == plan_.tuning.accumulation_steps) stage_ = Stage::kGap;
  }

  // Everybody sends to the k-th mate after it and receives from the k-th before it.

  void send_in(Payload payload, OpBatch& batch) {
    if (plan_.tokens(rank_) == 0) return;
    for (int hops = 1; hops < plan_.mesh.inner; ++hops) {
      const int mate = plan_.mate(rank_, hops);
      const HeadRange theirs = plan_.heads_of(mate);
      const int32_t stage = buffers_.sent(payload, mate);
      copy(payload, rank_, theirs, {kHomeBuffer, -1}, {stage, -1}, batch);
      transfer(OpKind::kSend, payload, mate, rank_, theirs, stage, 0, batch);
    }
    copy(payload, rank_, plan_.heads_of(rank_), {kHomeBuffer, -1}, gathered(payload), batch);
  }

  void receive_in(Payload payload, OpBatch& batch) {
    const HeadRange heads = plan_.heads_of(rank_);
    for (int hops = 1; hops < plan_.mesh.inner; ++hops) {
      const int mate = plan_.mate(rank_, -hops);
      if (plan_.tokens(mate) == 0) continue;
      if (const auto row = plan_.row_of(mate)) {
        transfer(OpKind::kReceive, payload, mate, mate, heads, buffers_.gathered(payload), *row,
                 batch);
        continue;
      }
      const int32_t stage = buffers_.received(payload, mate);
      transfer(OpKind::kReceive, payload, mate, mate, heads, stage, 0, batch);
      copy(payload, mate, heads, {stage, -1}, gathered(payload), batch);
    }
  }

  void send_out(Payload payload, OpBatch& batch) {
    const HeadRange heads = plan_.heads_of(rank_);
    for (int hops = 1; hops < plan_.mesh.inner; ++hops) {
      const int mate = plan_.mate(rank_, hops);
      if (plan_.tokens(mate) == 0) continue;
      if (const auto row = plan_.row_of(mate)) {
        transfer(OpKind::kSend, payload, mate, mate, heads, buffers_.gathered(payload), *row,
                 batch);
        continue;
      }
      const int32_t stage = buffers_.sent(payload, mate);
      copy(payload, mate, heads, gathered(payload), {stage, -1}, batch);
      transfer(OpKind::kSend, payload, mate, mate, heads, stage, 0, batch);
    }
  }

  void receive_out(Payload payload, OpBatch& batch) {
    if (plan_.tokens(rank_) == 0) return;
    bring_home(payload, plan_.heads_of(rank_), gathered(payload), batch);
    for (int hops = 1; hops < plan_.mesh.inner; ++hops) {
      const int mate = plan_.mate(rank_, -hops);
      const int32_t stage = buffers_.received(payload, mate);
      transfer(OpKind::kReceive, payload, mate, rank_, plan_.heads_of(mate), stage, 0, batch);
      bring_home(payload, plan_.heads_of(mate), {stage, -1}, batch);
    }
  }

  /// A buffer, and whose order its rows have.
  struct Rows {
    int32_t buffer = kHomeBuffer;
    int32_t order = -1;
  };
  Rows gathered(Payload payload) const {
    return {buffers_.gathered(payload), plan_.group_number(rank_)};
  }

  /// The first to bring some heads of a gradient sets it, all others add to it.
  void bring_home(Payload payload, HeadRange heads, Rows source, OpBatch& batch) {
    if (!is_gradient(payload) || is_first(payload, heads)) {
      copy(payload, rank_, heads, source, {}, batch);
      return;
    }
    Op op = row_op(OpKind::kAdd, payload, rank_, heads);
    name_keys(op);
    op.source_state = source.buffer;
    op.source_order = source.order;
    op.state = kHomeBuffer;
    op.bytes *= 3;  // Two are read, one is written.
    append(op, {}, batch);
  }

  bool is_first(Payload payload, HeadRange heads) {
    const HeadRange some = heads_in(plan_.problem, payload, heads);
    bool is_new = true;
    for (int64_t head = some.begin; head < some.end; ++head)
      is_new = brought_.insert({payload, head}).second && is_new;
    return is_new;
  }

  /// The next ops of the ring over groups, in terms of this mesh.
  bool ring_ops(OpBatch& batch) {
    OpBatch inner;
    if (!ring_->next(inner)) return false;
    for (const Op& op : inner.ops) {
      Readers deps;
      for (int32_t i = 0; i < op.dep_count; ++i) {
        LanePoint dep = inner.deps[static_cast<size_t>(op.dep_begin + i)];
        dep.position += before_ring_[static_cast<size_t>(dep.lane)];
        deps.push_back(dep);
      }
      const Op here = mapped(op);
      // Within the phase the ring keeps its own order.
      bool meets_first = false;
      for (const BufferUse& use : buffer_uses(here))
        meets_first = met_.insert({use.buffer, here.lane, use.writes}).second || meets_first;
      if (meets_first) order_.wait(here, deps);
      append_ordered(here, deps, batch);
    }
    return true;
  }

  Op mapped(Op op) const {
    const HeadRange heads = plan_.heads_of(rank_);
    const int ranks = plan_.partition.ranks();
    const bool is_transfer = op.kind == OpKind::kSend || op.kind == OpKind::kReceive;
    const bool has_all_heads = op.head_end == 0;
    if (op.kv_shard >= 0) op.kv_shard += ranks;
    if (op.q_shard >= 0) op.q_shard += ranks;
    op.head_end = static_cast<int32_t>(has_all_heads ? heads.end : heads.begin + op.head_end);
    op.head_begin = static_cast<int32_t>(heads.begin + op.head_begin);
    if (is_transfer) {
      op.peer = op.peer * plan_.mesh.inner + plan_.member_of(rank_);
      op.message += ring_messages() * (2 * micro_step_ + (is_backward_ ? 1 : 0));
    }
    name_buffers(op);
    return op;
  }

  /// More than one phase of the ring has.
  int64_t ring_messages() const {
    const int64_t most = 4 * plan_.groups();
    const Tokens block = std::min<Tokens>(plan_.tuning.block_tokens, plan_.problem.seq_len());
    return most * ((plan_.problem.seq_len() + block - 1) / block + 1);
  }

  void name_buffers(Op& op) const {
    const bool keys_move = op.payload == Payload::kKeyValue;
    const Payload own_sums = keys_move ? Payload::kQueryGradients : Payload::kKeyGradients;
    const Payload moved_sums = keys_move ? Payload::kKeyGradients : Payload::kQueryGradients;
    switch (op.kind) {
      case OpKind::kAttend:
        op.q_buffer = buffers_.gathered(Payload::kQuery);
        op.buffer = buffers_.of_ring(Payload::kKeyValue, op.buffer);
        break;
      case OpKind::kSend:
      case OpKind::kReceive:
        op.buffer = buffers_.of_ring(op.payload, op.buffer);
        break;
      case OpKind::kFinalize:
        op.buffer = buffers_.gathered(Payload::kOutput);
        break;
      case OpKind::kDelta:
        name_buffers_of_delta(op);
        break;
      case OpKind::kBackward:
        op.buffer = buffers_.of_ring(op.payload, op.buffer);
        op.q_buffer = buffers_.gathered(keys_move ? Payload::kQuerySide : Payload::kKeyValue);
        op.state = buffers_.of_ring(moved_sums, op.state);
        op.source_state = buffers_.gathered(own_sums);
        break;
      case OpKind::kAdd:
        op.source_state = buffers_.of_ring(op.payload, op.source_state);
        op.state = buffers_.of_ring(op.payload, op.state);
        break;
      case OpKind::kMerge:
      case OpKind::kCopy:
      case OpKind::kCompute:
        break;
    }
  }

  void name_buffers_of_delta(Op& op) const {
    op.buffer = buffers_.gathered(Payload::kOutput);
    op.q_buffer = buffers_.gathered(Payload::kQuerySide);
    op.state = buffers_.gathered(Payload::kKeyGradients);
    op.source_state = buffers_.gathered(Payload::kQueryGradients);
    // Gradients that stay here are summed here.
    if (!plan_.mesh.are_inputs_split || micro_step_ == 0) return;
    op.starts_state = false;
    op.bytes = delta_op(*plan_.ring_of(rank_, true).problem(), 0, op.q_end, false).bytes;
  }

  Op row_op(OpKind kind, Payload payload, int shard, HeadRange heads) const {
    return rows_op(plan_.problem, kind, payload, shard, {0, plan_.tokens(shard)}, heads);
  }

  /// Transfers and adds name keys where copies name rows.
  static void name_keys(Op& op) {
    if (op.payload != Payload::kKeyValue && op.payload != Payload::kKeyGradients) return;
    op.kv_shard = op.q_shard;
    op.kv_end = op.q_end;
    op.q_shard = -1;
    op.q_end = 0;
  }

  /// Moves all rows of a shard between buffers.
  void copy(Payload payload, int shard, HeadRange heads, Rows source, Rows target, OpBatch& batch) {
    Op op = row_op(OpKind::kCopy, payload, shard, heads);
    op.source_buffer = source.buffer;
    op.source_order = source.order;
    op.buffer = target.buffer;
    op.target_order = target.order;
    append(op, {}, batch);
  }

  void transfer(OpKind kind, Payload payload, int mate, int shard, HeadRange heads, int32_t buffer,
                int64_t row, OpBatch& batch) {
    constexpr int64_t kPayloads = 16;  // More than there are.
    Op op = row_op(kind, payload, shard, heads);
    const bool is_receive = kind == OpKind::kReceive;
    op.peer = mate;
    op.message = micro_step_ * kPayloads + static_cast<int64_t>(payload);
    op.buffer = buffer;
    op.buffer_begin = row;
    name_keys(op);
    int64_t& count = is_receive ? received_ : sent_;
    const int lanes = plan_.tuning.lanes;
    op.lane = plan_.first_lane() + (is_receive ? lanes : 0) + static_cast<int32_t>(count % lanes);
    ++count;
    append(op, {}, batch);
  }

  void append(const Op& op, Readers deps, OpBatch& batch) {
    order_.wait(op, deps);
    append_ordered(op, deps, batch);
  }

  void append_ordered(const Op& op, const Readers& deps, OpBatch& batch) {
    order_.done(op, writer_.append(op, deps, batch));
    ++appended_[static_cast<size_t>(op.lane)];
  }

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

class MeshSource : public ProgramSource {
 public:
  MeshSource(const Problem& problem, const Tuning& tuning, const Partition& partition,
             const HeadMesh& mesh)
      : plan_(problem, tuning, partition, mesh) {
    if (!tuning.is_deterministic || !has_backward(problem.pass) || !plan_.is_heads_repeated())
      return;
    throw_usage(
        "repeated KV heads cannot be deterministic in the backward pass: several ranks "
        "sum shares of their gradients, as many as there are ranks",
        "leave out --deterministic, or use no more ranks than KV heads");
  }

  int ranks() const override { return plan_.partition.ranks(); }
  int lanes() const override { return plan_.first_lane() + 2 * plan_.tuning.lanes; }
  std::unique_ptr<RankStream> stream(int rank) const override {
    return std::make_unique<MeshStream>(plan_, lanes(), rank);
  }
  std::string name() const override { return plan_.tuning.strategy; }
  const Problem* problem() const override { return &plan_.problem; }
  const Partition* partition() const override { return &plan_.partition; }
  std::vector<std::string> notes() const override {
    if (plan_.backward_rings.empty()) return {};
    return plan_.backward_rings.front()->notes();
  }
  std::vector<TokenRanges> groups() const override {
    std::vector<TokenRanges> tokens;
    for (int group = 0; group < plan_.groups(); ++group)
      tokens.push_back(plan_.gathered->shard(group));
    return tokens;
  }

  RankStorage storage(int rank) const override {
    const int32_t states = plan_.ring_storage(rank, false).states;
    const HeadRange heads = plan_.heads_of(rank);
    RankStorage storage;
    storage.query_tokens = plan_.tokens(rank);
    storage.has_home_inputs = !plan_.mesh.are_inputs_split;
    storage.home_tokens = storage.has_home_inputs ? plan_.tokens(rank) : 0;
    storage.states = 0;
    storage.shaped_buffers = MeshBuffers(plan_, rank).shapes();
    storage.shaped_states.assign(
        has_forward(plan_.problem.pass) ? static_cast<size_t>(states) : 0,
        {token_count(plan_.group_tokens(rank)), static_cast<int32_t>(heads.begin),
         static_cast<int32_t>(heads.end)});
    return storage;
  }

 private:
  MeshPlan plan_;
};

}  // namespace

std::unique_ptr<ProgramSource> make_head_mesh(const Problem& problem, const Tuning& tuning,
                                              const Partition& partition, const HeadMesh& mesh) {
  RING_ASSERT(mesh.inner >= 1 && partition.ranks() % mesh.inner == 0);
  return std::make_unique<MeshSource>(problem, tuning, partition, mesh);
}

}  // namespace ring
