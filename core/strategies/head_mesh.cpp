// The programs of head_split.h: an all-to-all in, a ring of gathered keys, an all-to-all back.
#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "core/error.h"
#include "core/strategies/cycle_routing.h"
#include "core/strategies/head_split.h"
#include "core/strategies/rank_tracks.h"
#include "core/strategies/rows_op.h"

namespace ring {
namespace {

/// The tokens of several shards in ascending order.
TokenRanges union_of(const Partition& partition, int first, int count) {
  std::vector<int64_t> positions;
  for (int rank = first; rank < first + count; ++rank) {
    for (const AffineRange& range : partition.shard(rank)) {
      for (int64_t i = 0; i < range.count; ++i) positions.push_back(range.position(i));
    }
  }
  std::sort(positions.begin(), positions.end());
  TokenRanges merged;
  for (const int64_t position : positions) {
    if (!merged.empty() && merged.back().last() + 1 == position) {
      ++merged.back().count;
    } else {
      merged.push_back({position, 1, 1});
    }
  }
  return merged;
}

/// The row of a group at which the rows of a shard lie one after another, if they do.
std::optional<int64_t> row_in_group(const TokenRanges& group, const TokenRanges& shard) {
  if (shard.empty()) return std::nullopt;
  int64_t next = index_of(group, shard.front().begin);
  const int64_t first = next;
  for (const AffineRange& range : shard) {
    for (int64_t i = 0; i < range.count; ++i, ++next) {
      if (index_of(group, range.position(i)) != next) return std::nullopt;
    }
  }
  return first;
}

/// The mesh and how the buffers of its ranks are numbered.
struct MeshPlan {
  MeshPlan(const Problem& the_problem, const Tuning& the_tuning, const Partition& the_partition,
           const HeadMesh& the_mesh)
      : problem(the_problem), tuning(the_tuning), partition(the_partition), mesh(the_mesh) {
    heads = split_heads(problem.heads, problem.kv_heads, mesh.inner, mesh.rule);
    std::vector<TokenRanges> unions;
    for (int group = 0; group < groups(); ++group)
      unions.push_back(union_of(partition, group * mesh.inner, mesh.inner));
    gathered.emplace(Partition::from_ranges("groups", problem.seq_len(), std::move(unions)));
    for (int rank = 0; rank < partition.ranks(); ++rank)
      rows.push_back(row_in_group(group_tokens(rank), partition.shard(rank)));
    for (int member = 0; member < mesh.inner; ++member) {
      Problem part = problem;
      part.heads = heads[static_cast<size_t>(member)].count();
      part.kv_heads = kv_heads_of(problem, heads[static_cast<size_t>(member)]).count();
      rings.push_back(make_kv_program(part, tuning, *gathered, [](const KvPlan& plan) {
        return std::make_unique<CycleRouting>(plan, std::vector<int>{1});
      }));
    }
  }

  int groups() const { return partition.ranks() / mesh.inner; }
  int group_of(int rank) const { return rank / mesh.inner; }
  int member_of(int rank) const { return rank % mesh.inner; }
  /// The member of the same group `hops` places on.
  int mate(int rank, int hops) const {
    return group_of(rank) * mesh.inner + (member_of(rank) + hops + mesh.inner) % mesh.inner;
  }
  int group_number(int rank) const { return partition.ranks() + group_of(rank); }
  const TokenRanges& group_tokens(int rank) const { return gathered->shard(group_of(rank)); }
  HeadRange heads_of(int rank) const { return heads[static_cast<size_t>(member_of(rank))]; }
  Tokens tokens(int rank) const { return partition.shard_tokens(rank); }
  const std::optional<int64_t>& row_of(int rank) const { return rows[static_cast<size_t>(rank)]; }
  const ProgramSource& ring_of(int rank) const {
    return *rings[static_cast<size_t>(member_of(rank))];
  }
  /// Lanes of the all-to-alls come after those of the ring, or instead of them when there is none.
  int first_lane() const { return groups() > 1 ? rings.front()->lanes() : 1; }

  const Problem problem;
  const Tuning tuning;
  const Partition partition;
  const HeadMesh mesh;
  std::vector<HeadRange> heads;       ///< By member of a group.
  std::optional<Partition> gathered;  ///< One shard per group.
  std::vector<std::optional<int64_t>> rows;
  std::vector<std::unique_ptr<ProgramSource>> rings;  ///< By member: a ring over the groups.
};

/// Numbers of the buffers of a rank.
class MeshBuffers {
 public:
  MeshBuffers(const MeshPlan& plan, int rank) {
    const RankStorage ring = plan.ring_of(rank).storage(plan.group_of(rank));
    const Tokens group = token_count(plan.group_tokens(rank));
    const HeadRange heads = plan.heads_of(rank);
    const int filled = plan.mesh.are_inputs_split ? plan.group_number(rank) : -1;
    query_ = add(Payload::kQuery, group, heads, filled);
    keys_ = add(Payload::kKeyValue, group, heads, filled);
    ring_ = static_cast<int32_t>(shapes_.size());
    for (int i = 0; i < ring.buffers; ++i) add(Payload::kKeyValue, ring.buffer_tokens, heads, -1);
    output_ = add(Payload::kOutput, group, heads, -1);
    for (int hops = 1; hops < plan.mesh.inner; ++hops) {
      const int mate = plan.mate(rank, hops);
      const HeadRange theirs = plan.heads_of(mate);
      const bool is_staged = !plan.row_of(mate).has_value();
      if (!plan.mesh.are_inputs_split) {
        for (const Payload payload : {Payload::kQuery, Payload::kKeyValue}) {
          sent_[{payload, mate}] = add(payload, plan.tokens(rank), theirs, -1);
          if (is_staged) received_[{payload, mate}] = add(payload, plan.tokens(mate), heads, -1);
        }
      }
      if (is_staged) {
        sent_[{Payload::kOutput, mate}] = add(Payload::kOutput, plan.tokens(mate), heads, -1);
      }
      received_[{Payload::kOutput, mate}] = add(Payload::kOutput, plan.tokens(rank), theirs, -1);
    }
  }

  int32_t query() const { return query_; }
  int32_t keys() const { return keys_; }
  int32_t ring(int32_t buffer) const { return ring_ + buffer; }
  int32_t output() const { return output_; }
  int32_t sent(Payload payload, int mate) const { return sent_.at({payload, mate}); }
  int32_t received(Payload payload, int mate) const { return received_.at({payload, mate}); }
  int32_t gathered(Payload payload) const { return payload == Payload::kQuery ? query_ : keys_; }
  const std::vector<BufferShape>& shapes() const { return shapes_; }

 private:
  int32_t add(Payload payload, Tokens tokens, HeadRange heads, int filled) {
    shapes_.push_back({payload, tokens, static_cast<int32_t>(heads.begin),
                       static_cast<int32_t>(heads.end), filled});
    return static_cast<int32_t>(shapes_.size()) - 1;
  }

  std::vector<BufferShape> shapes_;
  std::map<std::pair<Payload, int>, int32_t> sent_, received_;
  int32_t query_ = 0, keys_ = 0, ring_ = 0, output_ = 0;
};

class MeshStream : public RankStream {
 public:
  MeshStream(const MeshPlan& plan, int lanes, int rank)
      : plan_(plan),
        rank_(rank),
        buffers_(plan, rank),
        writer_(lanes),
        ring_(plan.ring_of(rank).stream(plan.group_of(rank))) {}

  bool next(OpBatch& batch) override {
    const size_t before = batch.ops.size();
    while (batch.ops.size() == before && stage_ < 3) {
      if (stage_ == 0) {
        if (!plan_.mesh.are_inputs_split) bring_inputs(batch);
        ++stage_;
      } else if (stage_ == 1) {
        if (!ring_ops(batch)) ++stage_;
      } else {
        bring_outputs(batch);
        ++stage_;
      }
    }
    return batch.ops.size() > before;
  }

 private:
  /// Everybody sends to the k-th mate after it and receives from the k-th before it.
  void bring_inputs(OpBatch& batch) {
    constexpr std::array kPayloads = {Payload::kQuery, Payload::kKeyValue};
    for (int hops = 1; hops < plan_.mesh.inner; ++hops) {
      const int mate = plan_.mate(rank_, hops);
      if (plan_.tokens(rank_) == 0) continue;
      for (const Payload payload : kPayloads) {
        const int32_t stage = buffers_.sent(payload, mate);
        const LanePoint packed =
            copy(payload, rank_, plan_.heads_of(mate), kHomeBuffer, -1, stage, -1, {}, batch);
        transfer(OpKind::kSend, payload, mate, rank_, plan_.heads_of(mate), stage, 0, {&packed, 1},
                 batch);
      }
    }
    if (plan_.tokens(rank_) > 0) {
      for (const Payload payload : kPayloads) {
        arrived_.push_back(copy(payload, rank_, plan_.heads_of(rank_), kHomeBuffer, -1,
                                buffers_.gathered(payload), plan_.group_number(rank_), {}, batch));
      }
    }
    for (int hops = 1; hops < plan_.mesh.inner; ++hops) {
      const int mate = plan_.mate(rank_, -hops);
      if (plan_.tokens(mate) == 0) continue;
      for (const Payload payload : kPayloads) receive_input(payload, mate, batch);
    }
  }

  void receive_input(Payload payload, int mate, OpBatch& batch) {
    const HeadRange heads = plan_.heads_of(rank_);
    if (const auto row = plan_.row_of(mate)) {
      arrived_.push_back(transfer(OpKind::kReceive, payload, mate, mate, heads,
                                  buffers_.gathered(payload), *row, {}, batch));
      return;
    }
    const int32_t stage = buffers_.received(payload, mate);
    const LanePoint arrived =
        transfer(OpKind::kReceive, payload, mate, mate, heads, stage, 0, {}, batch);
    const LanePoint unpacked = copy(payload, mate, heads, stage, -1, buffers_.gathered(payload),
                                    plan_.group_number(rank_), {&arrived, 1}, batch);
    arrived_.push_back(unpacked);
  }

  /// The next ops of the ring over groups, in terms of this mesh.
  bool ring_ops(OpBatch& batch) {
    OpBatch inner;
    if (!ring_->next(inner)) return false;
    for (const Op& op : inner.ops) {
      Readers deps;
      for (int32_t i = 0; i < op.dep_count; ++i) {
        LanePoint dep = inner.deps[static_cast<size_t>(op.dep_begin + i)];
        if (dep.lane == kComputeLane) dep.position += ops_before_ring_;
        deps.push_back(dep);
      }
      const bool is_compute = op.lane == kComputeLane;
      const bool reads_home = op.kind == OpKind::kSend && op.buffer == kHomeBuffer;
      if ((is_compute && !has_computed_) || reads_home)
        deps.insert(deps.end(), arrived_.begin(), arrived_.end());
      has_computed_ = has_computed_ || is_compute;
      const LanePoint point = writer_.append(mapped(op), deps, batch);
      if (op.kind == OpKind::kFinalize) finalized_ = point;
    }
    return true;
  }

  Op mapped(Op op) const {
    const HeadRange heads = plan_.heads_of(rank_);
    const int ranks = plan_.partition.ranks();
    const bool is_transfer = op.kind == OpKind::kSend || op.kind == OpKind::kReceive;
    if (op.kv_shard >= 0) op.kv_shard += ranks;
    if (op.q_shard >= 0) op.q_shard += ranks;
    op.head_end = static_cast<int32_t>(is_transfer ? heads.end : heads.begin + op.head_end);
    op.head_begin = static_cast<int32_t>(heads.begin + op.head_begin);
    op.buffer = op.buffer == kHomeBuffer ? buffers_.keys() : buffers_.ring(op.buffer);
    if (op.kind == OpKind::kAttend) op.q_buffer = buffers_.query();
    if (op.kind == OpKind::kFinalize) op.buffer = buffers_.output();
    if (is_transfer) op.peer = op.peer * plan_.mesh.inner + plan_.member_of(rank_);
    return op;
  }

  void bring_outputs(OpBatch& batch) {
    const HeadRange heads = plan_.heads_of(rank_);
    const int32_t output = buffers_.output(), group = plan_.group_number(rank_);
    const auto done =
        finalized_ ? std::span<const LanePoint>(&*finalized_, 1) : std::span<const LanePoint>();
    for (int hops = 1; hops < plan_.mesh.inner; ++hops) {
      const int mate = plan_.mate(rank_, hops);
      if (plan_.tokens(mate) == 0) continue;
      if (const auto row = plan_.row_of(mate)) {
        transfer(OpKind::kSend, Payload::kOutput, mate, mate, heads, output, *row, done, batch);
        continue;
      }
      const int32_t stage = buffers_.sent(Payload::kOutput, mate);
      const LanePoint packed =
          copy(Payload::kOutput, mate, heads, output, group, stage, -1, {}, batch);
      transfer(OpKind::kSend, Payload::kOutput, mate, mate, heads, stage, 0, {&packed, 1}, batch);
    }
    if (plan_.tokens(rank_) == 0) return;
    copy(Payload::kOutput, rank_, heads, output, group, kHomeBuffer, -1, {}, batch);
    for (int hops = 1; hops < plan_.mesh.inner; ++hops) {
      const int mate = plan_.mate(rank_, -hops);
      const int32_t stage = buffers_.received(Payload::kOutput, mate);
      const LanePoint arrived = transfer(OpKind::kReceive, Payload::kOutput, mate, rank_,
                                         plan_.heads_of(mate), stage, 0, {}, batch);
      copy(Payload::kOutput, rank_, plan_.heads_of(mate), stage, -1, kHomeBuffer, -1, {&arrived, 1},
           batch);
    }
  }

  Op row_op(OpKind kind, Payload payload, int shard, HeadRange heads) const {
    return rows_op(plan_.problem, kind, payload, shard, {0, plan_.tokens(shard)}, heads);
  }

  /// Moves all rows of a shard between buffers; an order of -1 stands for the shard's own.
  LanePoint copy(Payload payload, int shard, HeadRange heads, int32_t source, int32_t source_order,
                 int32_t target, int32_t target_order, std::span<const LanePoint> deps,
                 OpBatch& batch) {
    Op op = row_op(OpKind::kCopy, payload, shard, heads);
    op.source_buffer = source;
    op.source_order = source_order;
    op.buffer = target;
    op.target_order = target_order;
    if (stage_ == 0) ++ops_before_ring_;
    return writer_.append(op, deps, batch);
  }

  LanePoint transfer(OpKind kind, Payload payload, int mate, int shard, HeadRange heads,
                     int32_t buffer, int64_t row, std::span<const LanePoint> deps, OpBatch& batch) {
    Op op = row_op(kind, payload, shard, heads);
    const bool is_receive = kind == OpKind::kReceive;
    op.peer = mate;
    op.message = static_cast<int64_t>(payload);
    op.buffer = buffer;
    op.buffer_begin = row;
    if (payload == Payload::kKeyValue) {
      op.kv_shard = shard;
      op.kv_end = op.q_end;
      op.q_shard = -1;
      op.q_end = 0;
    }
    int64_t& count = is_receive ? received_ : sent_;
    const int lanes = plan_.tuning.lanes;
    op.lane = plan_.first_lane() + (is_receive ? lanes : 0) + static_cast<int32_t>(count % lanes);
    ++count;
    return writer_.append(op, deps, batch);
  }

  const MeshPlan& plan_;
  const int rank_;
  const MeshBuffers buffers_;
  OpWriter writer_;
  std::unique_ptr<RankStream> ring_;
  int stage_ = 0;
  int64_t ops_before_ring_ = 0;  ///< Of the compute lane.
  int64_t sent_ = 0, received_ = 0;
  Readers arrived_;
  bool has_computed_ = false;
  std::optional<LanePoint> finalized_;
};

class MeshSource : public ProgramSource {
 public:
  MeshSource(const Problem& problem, const Tuning& tuning, const Partition& partition,
             const HeadMesh& mesh)
      : plan_(problem, tuning, partition, mesh) {}

  int ranks() const override { return plan_.partition.ranks(); }
  int lanes() const override { return plan_.first_lane() + 2 * plan_.tuning.lanes; }
  std::unique_ptr<RankStream> stream(int rank) const override {
    return std::make_unique<MeshStream>(plan_, lanes(), rank);
  }
  std::string name() const override { return plan_.tuning.strategy; }
  const Problem* problem() const override { return &plan_.problem; }
  const Partition* partition() const override { return &plan_.partition; }
  std::vector<TokenRanges> groups() const override {
    std::vector<TokenRanges> tokens;
    for (int group = 0; group < plan_.groups(); ++group)
      tokens.push_back(plan_.gathered->shard(group));
    return tokens;
  }

  RankStorage storage(int rank) const override {
    const RankStorage ring = plan_.ring_of(rank).storage(plan_.group_of(rank));
    const HeadRange heads = plan_.heads_of(rank);
    RankStorage storage;
    storage.query_tokens = plan_.tokens(rank);
    storage.has_home_inputs = !plan_.mesh.are_inputs_split;
    storage.home_tokens = storage.has_home_inputs ? plan_.tokens(rank) : 0;
    storage.states = 0;
    storage.shaped_buffers = MeshBuffers(plan_, rank).shapes();
    storage.shaped_states.assign(
        static_cast<size_t>(ring.states),
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
