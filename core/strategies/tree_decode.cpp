// Tree decode: few queries, sharded keys; queries go down a tree, partial results come up merged.
#include <algorithm>
#include <optional>

#include "core/error.h"
#include "core/payload.h"
#include "core/strategies/attend_op.h"
#include "core/strategies/kv_routing.h"
#include "core/strategies/rank_tracks.h"
#include "core/strategies/rows_op.h"
#include "core/strategy.h"

namespace ring {
namespace {

constexpr int kQueryTrack = 0, kPartialTrack = 1, kTracks = 2;

struct TreePlan {
  TreePlan(const Problem& the_problem, const Tuning& the_tuning, const Partition& the_partition)
      : problem(the_problem),
        tuning(the_tuning),
        partition(the_partition),
        messages(partition, tuning) {
    for (int shard = 0; shard < ranks(); ++shard) asking.push_back(find_asking(shard));
    for (const KeySlice& rows : asking) most_rows = std::max(most_rows, rows.end - rows.begin);
    joins.assign(static_cast<size_t>(ranks() * ranks()), false);
    for (int shard = 0; shard < ranks(); ++shard) {
      for (int place = ranks() - 1; place >= 0; --place) {
        bool any = place == 0 || sees(shard, rank_at(shard, place));
        for (const int child : children(place)) any = any || is_joined(shard, child);
        joins[static_cast<size_t>(shard * ranks() + place)] = any;
      }
    }
  }
  TreePlan(const TreePlan&) = delete;  // `messages` refers to `partition`.
  TreePlan& operator=(const TreePlan&) = delete;

  int ranks() const { return partition.ranks(); }
  HeadRange all_heads() const { return {0, problem.heads}; }
  int rank_at(int shard, int place) const { return (shard + place) % ranks(); }
  int place_of(int shard, int rank) const { return (rank - shard + ranks()) % ranks(); }
  bool is_joined(int shard, int place) const {
    return joins[static_cast<size_t>(shard * ranks() + place)];
  }
  /// place + 2^k for every 2^k above the place.
  std::vector<int> children(int place) const {
    std::vector<int> found;
    int bit = 1;
    while (bit <= place) bit *= 2;
    for (; place + bit < ranks(); bit *= 2) found.push_back(place + bit);
    return found;
  }
  /// The place without its highest bit.
  static int parent(int place) {
    int bit = 1;
    while (2 * bit <= place) bit *= 2;
    return place - bit;
  }
  bool sees(int shard, int rank) const {
    const KeySlice rows = asking[static_cast<size_t>(shard)];
    return problem.mask.count_visible(slice(partition.shard(shard), rows.begin, rows.end),
                                      partition.shard(rank)) > 0;
  }

  const Problem problem;
  const Tuning tuning;
  const Partition partition;
  const ShardMessages messages;
  std::vector<KeySlice> asking;  ///< By shard: from the first row that sees anything to the last.
  Tokens most_rows = 0;
  std::vector<bool> joins;  ///< (shard, place): whether the place or any below it answers.

 private:
  KeySlice find_asking(int shard) const {
    const TokenRanges& tokens = partition.shard(shard);
    const TokenRanges all{{0, problem.seq_len(), 1}};
    const int64_t count = partition.shard_tokens(shard);
    const auto sees_any = [&](int64_t from, int64_t to) {
      return problem.mask.count_visible(slice(tokens, from, to), all) > 0;
    };
    if (count == 0 || !sees_any(0, count)) return {0, 0};
    int64_t low = 0, high = count;  // Rows below `low` see nothing, rows below `high` do.
    while (low + 1 < high) {
      const int64_t middle = (low + high) / 2;
      (sees_any(0, middle) ? high : low) = middle;
    }
    const int64_t begin = low;
    low = begin;
    high = count;  // Rows from `low` on see something, rows from `high` on do not.
    while (low + 1 < high) {
      const int64_t middle = (low + high) / 2;
      (sees_any(middle, count) ? low : high) = middle;
    }
    return {begin, high};
  }
};

class TreeStream : public RankStream {
 public:
  TreeStream(const TreePlan& plan, int rank)
      : plan_(plan),
        rank_(rank),
        writer_(RankTracks::lanes_of(plan.tuning, kTracks, false)),
        buffers_(static_cast<size_t>(plan.tuning.pipeline_depth)),
        work_(kWorkStates),
        answers_(static_cast<size_t>(plan.tuning.pipeline_depth)) {}

  /// States: two to work in, by turns, then those that answers are received into.
  static constexpr int32_t kWorkStates = 2;

  bool next(OpBatch& batch) override {
    const size_t before = batch.ops.size();
    while (batch.ops.size() == before && shard_ <= plan_.ranks()) {
      if (shard_ < plan_.ranks()) ask(batch);
      if (asked_) answer(*asked_, batch);
      asked_ = std::move(asking_);
      if (shard_ == plan_.ranks()) empty_rows(batch);
      ++shard_;
    }
    return batch.ops.size() > before;
  }

 private:
  /// Queries of one shard that this rank works on. Answers of its children are merged only after
  /// the queries of the next shard were attended to, so that computation does not wait for them.
  struct Work {
    int shard = 0, place = 0;
    int32_t state = 0;
    AttendWriter attends;
  };

  KeySlice rows_of(int shard) const { return plan_.asking[static_cast<size_t>(shard)]; }

  void ask(OpBatch& batch) {
    const int shard = shard_, place = plan_.place_of(shard, rank_);
    const KeySlice rows = rows_of(shard);
    if (rows.begin == rows.end || !plan_.is_joined(shard, place)) return;
    int32_t buffer = kHomeBuffer;
    Readers arrived;
    const auto slot = static_cast<size_t>(received_ % plan_.tuning.pipeline_depth);
    if (place > 0) {
      buffer = static_cast<int32_t>(slot);
      Op op = query_op(OpKind::kReceive, shard, buffer);
      op.peer = plan_.rank_at(shard, TreePlan::parent(place));
      op.lane = lane_of(kQueryTrack, true, received_++);
      arrived = {writer_.append(op, buffers_[slot], batch)};
      buffers_[slot].clear();
    }
    for (const int child : plan_.children(place)) {
      if (!plan_.is_joined(shard, child)) continue;
      Op op = query_op(OpKind::kSend, shard, buffer);
      op.peer = plan_.rank_at(shard, child);
      op.lane = lane_of(kQueryTrack, false, sent_++);
      const LanePoint point = writer_.append(op, arrived, batch);
      if (place > 0) buffers_[slot].push_back(point);
    }
    const auto state = static_cast<int32_t>(worked_++ % kWorkStates);
    const RowPlace place_of_rows{shard, rows, buffer, place > 0 ? 0 : rows.begin, state};
    asking_ = std::make_unique<Work>(
        Work{shard, place, state,
             AttendWriter(plan_.problem, plan_.tuning, plan_.partition, place_of_rows)});
    Readers deps = work_[static_cast<size_t>(state)];
    deps.insert(deps.end(), arrived.begin(), arrived.end());
    const auto last = attend(asking_->attends, place > 0 ? 1 : 0, deps, batch);
    if (place > 0 && last) buffers_[slot].push_back(*last);
  }

  std::optional<LanePoint> attend(AttendWriter& attends, int32_t step,
                                  std::span<const LanePoint> deps, OpBatch& batch) {
    std::optional<LanePoint> last;
    const KeySlice keys{0, plan_.partition.shard_tokens(rank_)};
    for (int64_t i = 0; i < plan_.messages.blocks_of(keys); ++i) {
      const KeySlice block = plan_.messages.block(keys, i);
      const AttendPlace place{rank_, block, kHomeBuffer, block.begin, step};
      if (const auto point =
              attends.append(place, last ? std::span<const LanePoint>() : deps, writer_, batch)) {
        last = point;
      }
    }
    return last;
  }

  void answer(Work& work, OpBatch& batch) {
    std::vector<int> children = plan_.children(work.place);
    std::reverse(children.begin(), children.end());  // Small subtrees are ready first.
    for (const int child : children) {
      if (!plan_.is_joined(work.shard, child)) continue;
      const auto slot = static_cast<size_t>(taken_ % plan_.tuning.pipeline_depth);
      const auto state = kWorkStates + static_cast<int32_t>(slot);
      Op op = partial_op(OpKind::kReceive, work.shard, state);
      op.peer = plan_.rank_at(work.shard, child);
      op.lane = lane_of(kPartialTrack, true, taken_++);
      Readers deps{writer_.append(op, answers_[slot], batch)};
      // The first to touch the state, if there were no keys: whoever sent it must be done.
      const Readers& free = work_[static_cast<size_t>(work.state)];
      deps.insert(deps.end(), free.begin(), free.end());
      answers_[slot] = {work.attends.merge(state, op.step, deps, writer_, batch)};
    }
    if (work.place == 0) {
      work.attends.finalize(writer_, batch);
      work_[static_cast<size_t>(work.state)].clear();
      return;
    }
    const LanePoint ready = work.attends.finalize_partial(2, writer_, batch);
    Op op = partial_op(OpKind::kSend, work.shard, work.state);
    op.peer = plan_.rank_at(work.shard, TreePlan::parent(work.place));
    op.lane = lane_of(kPartialTrack, false, given_++);
    work_[static_cast<size_t>(work.state)] = {writer_.append(op, {&ready, 1}, batch)};
  }

  /// Output of the rows that ask for nothing is zero.
  void empty_rows(OpBatch& batch) {
    const KeySlice rows = rows_of(rank_);
    const int64_t count = plan_.partition.shard_tokens(rank_);
    for (const KeySlice empty : {KeySlice{0, rows.begin}, KeySlice{rows.end, count}}) {
      if (empty.begin >= empty.end) continue;
      const int32_t state = kWorkStates + plan_.tuning.pipeline_depth;
      AttendWriter(plan_.problem, plan_.tuning, plan_.partition,
                   RowPlace{rank_, empty, kHomeBuffer, empty.begin, state})
          .finalize(writer_, batch);
    }
  }

  Op query_op(OpKind kind, int shard, int32_t buffer) const {
    Op op = rows_op(plan_.problem, kind, Payload::kQuery, shard, rows_of(shard), plan_.all_heads());
    op.message = shard;
    op.buffer = buffer;
    op.buffer_begin = buffer == kHomeBuffer ? op.q_begin : 0;
    op.step = 1;
    return op;
  }

  Op partial_op(OpKind kind, int shard, int32_t state) const {
    Op op =
        rows_op(plan_.problem, kind, Payload::kPartial, shard, rows_of(shard), plan_.all_heads());
    op.message = plan_.ranks() + shard;
    op.state = state;
    op.step = 2;
    return op;
  }

  int32_t lane_of(int track, bool is_receive, int64_t count) const {
    return track_lane(plan_.tuning.lanes, track, is_receive, count);
  }

  const TreePlan& plan_;
  const int rank_;
  OpWriter writer_;
  std::vector<Readers> buffers_, work_, answers_;  ///< What must be done before they are free.
  std::unique_ptr<Work> asking_, asked_;
  int64_t received_ = 0, sent_ = 0, worked_ = 0, taken_ = 0, given_ = 0;
  int shard_ = 0;
};

class TreeSource : public ProgramSource {
 public:
  TreeSource(const Problem& problem, const Tuning& tuning, const Partition& partition)
      : plan_(problem, tuning, partition) {}

  int ranks() const override { return plan_.ranks(); }
  int lanes() const override { return RankTracks::lanes_of(plan_.tuning, kTracks, false); }
  std::unique_ptr<RankStream> stream(int rank) const override {
    return std::make_unique<TreeStream>(plan_, rank);
  }
  const Problem* problem() const override { return &plan_.problem; }
  std::string name() const override { return plan_.tuning.strategy; }

  RankStorage storage(int rank) const override {
    RankStorage storage;
    storage.query_tokens = storage.home_tokens = plan_.partition.shard_tokens(rank);
    storage.states = 0;
    const auto heads = static_cast<int32_t>(plan_.problem.heads);
    const int depth = plan_.ranks() > 1 ? plan_.tuning.pipeline_depth : 0;
    storage.shaped_buffers.assign(static_cast<size_t>(depth),
                                  {Payload::kQuery, plan_.most_rows, 0, heads, -1});
    storage.shaped_states.assign(
        static_cast<size_t>(TreeStream::kWorkStates + plan_.tuning.pipeline_depth),
        {plan_.most_rows, 0, heads});
    const KeySlice rows = plan_.asking[static_cast<size_t>(rank)];
    const Tokens empty = std::max(rows.begin, plan_.partition.shard_tokens(rank) - rows.end);
    storage.shaped_states.push_back({empty, 0, heads});
    return storage;
  }

 private:
  TreePlan plan_;
};

std::unique_ptr<ProgramSource> make(const Problem& problem, const Tuning& tuning,
                                    const Partition& partition) {
  if (has_backward(problem.pass)) {
    throw_usage("strategy tree-decode has no backward pass: it is for inference",
                "use --pass forward, or pass-q or pass-kv for training");
  }
  require_arrival_order(tuning, "tree-decode");
  return std::make_unique<TreeSource>(problem, tuning, partition);
}

}  // namespace

// For every rank that asks, the other ranks form a binomial tree: Q goes down it, each rank
// attends its own keys, merges what its children answer, and sends one partial result up. log2 P
// hops instead of P - 1. Rows that see nothing are not sent. Source: Tree Attention, arXiv
// 2408.04093.
Strategy tree_decode_strategy() {
  return {"tree-decode",
          "queries go down a tree of ranks, keys stay, partial results come up merged",
          "",
          make,
          {"Q rows Hq Dqk b per child, and rows Hq (Dv + 1) 4 to the parent; log2 P hops",
           "own Q, K, V; Q and four partial results of the rows that ask",
           "decoding: a few queries over a long sharded cache, where latency counts"}};
}

}  // namespace ring
