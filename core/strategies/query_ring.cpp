#include "core/strategies/query_ring.h"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <tuple>

#include "core/payload.h"
#include "core/strategies/attend_op.h"
#include "core/strategies/cycle_routing.h"
#include "core/strategies/forward_phase.h"
#include "core/strategies/rank_tracks.h"
#include "core/strategies/rows_op.h"

namespace ring {
namespace {

/// Partial results have the track that gradients have in the backward pass.
constexpr int kQueryTrack = 0, kPartialTrack = 1;

/// Who needs what, and how states are numbered: first one per own message, then those for the
/// queries of others, then those that answers are received into.
struct QueryPlan {
  QueryPlan(const Problem& the_problem, const Tuning& the_tuning, const Partition& the_partition,
            ReturnOfPartials when_to_return)
      : problem(the_problem),
        tuning(the_tuning),
        partition(the_partition),
        messages(partition, tuning),
        when(when_to_return) {
    last_steps.assign(static_cast<size_t>(ranks() * messages.rounds()), -1);
    for (int shard = 0; shard < ranks(); ++shard) {
      for (int64_t m = 0; m < messages.messages_of(shard); ++m) {
        int step = ranks() - 2;
        while (step >= 0 && !is_needed(shard, m, at(shard, step + 1))) --step;
        last_step(shard, m) = step;
        if (tuning.is_deterministic) count_states(shard, m);
      }
    }
  }
  QueryPlan(const QueryPlan&) = delete;  // `messages` refers to `partition`.
  QueryPlan& operator=(const QueryPlan&) = delete;

  int ranks() const { return partition.ranks(); }
  HeadRange all_heads() const { return {0, problem.heads}; }
  /// The rank `hops` hops on. Queries go to the rank before, whose keys causal masks let them see.
  int at(int rank, int hops) const { return ((rank - hops) % ranks() + ranks()) % ranks(); }
  bool is_needed(int shard, int64_t m, int rank) const {
    const KeySlice rows = messages.message(shard, m);
    return problem.mask.count_visible(slice(partition.shard(shard), rows.begin, rows.end),
                                      partition.shard(rank)) > 0;
  }
  int& last_step(int shard, int64_t m) {
    return last_steps[static_cast<size_t>(shard * messages.rounds() + m)];
  }
  int last_step(int shard, int64_t m) const {
    return last_steps[static_cast<size_t>(shard * messages.rounds() + m)];
  }

  TokenRanges rows(int shard, int64_t m) const {
    const KeySlice part = messages.message(shard, m);
    return slice(partition.shard(shard), part.begin, part.end);
  }
  /// Blocks of the sequence, of which deterministic trees are made.
  int64_t chunks() const {
    return (problem.seq_len() + tuning.block_tokens - 1) / tuning.block_tokens;
  }

  /// Whether partial results are taken while the ring still turns. Nodes of a tree are not: the
  /// states that they need become free one by one.
  bool is_taken_at_once() const {
    return when == ReturnOfPartials::kAtOnce && !tuning.is_deterministic;
  }
  int32_t own_states() const { return static_cast<int32_t>(messages.rounds()) * states_of_own; }
  /// Queries of others that are worked on, or whose results wait to be sent.
  int32_t foreign_slots() const {
    if (ranks() == 1) return 0;
    return is_taken_at_once() ? tuning.pipeline_depth
                              : static_cast<int32_t>((ranks() - 1) * messages.rounds());
  }
  int32_t foreign_states() const { return foreign_slots() * states_of_foreign; }
  /// Deterministic, nodes are received into the states of the own tree.
  int32_t answer_states() const {
    return ranks() > 1 && !tuning.is_deterministic ? tuning.pipeline_depth : 0;
  }

  const Problem problem;
  const Tuning tuning;
  const Partition partition;
  const ShardMessages messages;
  const ReturnOfPartials when;
  std::vector<int> last_steps;  ///< (shard, m): step of the last hop, -1 for none.
  /// States of one own message, and of one of another rank: more than one for trees.
  int32_t states_of_own = 1, states_of_foreign = 1;
  /// (shard, m, rank): the nodes that the rank has for the rows in the end.
  std::map<std::tuple<int, int64_t, int>, std::vector<StateTree::Node>> nodes;

 private:
  /// Goes through the trees as the ranks will.
  void count_states(int shard, int64_t m) {
    StateTree own = tree_of(problem, tuning, rows(shard, m));
    add_chunks(shard, m, shard, own);
    for (int step = 0; step <= last_step(shard, m); ++step) {
      const int other = at(shard, step + 1);
      if (!is_needed(shard, m, other)) continue;
      StateTree theirs = tree_of(problem, tuning, rows(shard, m));
      add_chunks(shard, m, other, theirs);
      states_of_foreign = std::max(states_of_foreign, theirs.states());
      std::vector<StateTree::Node>& held = nodes[{shard, m, other}];
      held = theirs.held();
      for (StateTree::Node node : held) {
        node.state = own.acquire();
        own.add(node);
      }
    }
    states_of_own = std::max(states_of_own, own.states());
  }

  void add_chunks(int shard, int64_t m, int rank, StateTree& tree) const {
    const TokenRanges asking = rows(shard, m);
    const KeySlice keys{0, partition.shard_tokens(rank)};
    for (int64_t i = 0; i < messages.blocks_of(keys); ++i) {
      const KeySlice block = messages.block(keys, i);
      const TokenRanges tokens = slice(partition.shard(rank), block.begin, block.end);
      if (problem.mask.count_visible(asking, tokens) == 0) continue;
      tree.add(tokens.front().begin / tuning.block_tokens, tree.acquire());
    }
  }
};

class QueryForward : public ForwardPhase {
 public:
  QueryForward(const QueryPlan& plan, int rank, RankTracks& tracks, int32_t first_buffer)
      : plan_(plan),
        rank_(rank),
        tracks_(tracks),
        writer_(tracks.writer()),
        first_buffer_(first_buffer),
        buffers_(static_cast<size_t>(plan.tuning.pipeline_depth)),
        foreign_(static_cast<size_t>(plan.foreign_slots())),
        answers_(static_cast<size_t>(plan.answer_states())) {}

  void begin(int64_t first_message) override {
    first_message_ = first_message;
    own_.clear();
    given_.clear();
    round_ = 0;
    step_ = -1;
    is_finished_ = false;
  }

  bool next(OpBatch& batch) override {
    if (is_finished_) return false;
    const size_t before = batch.ops.size();
    while (batch.ops.size() == before && !is_finished_) advance(batch);
    return batch.ops.size() > before;
  }

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

  void advance(OpBatch& batch) {
    if (round_ == plan_.messages.rounds()) {
      finish(batch);
      return;
    }
    if (step_ < 0) {
      if (round_ < plan_.messages.messages_of(rank_)) own_message(batch);
    } else {
      const int shard = plan_.at(rank_, -1 - step_);
      if (round_ < plan_.messages.messages_of(shard) && plan_.last_step(shard, round_) >= step_) {
        received_message(shard, batch);
      }
      if (plan_.is_taken_at_once()) collect_answers(1, batch);
      expect_answer();
    }
    if (++step_ == plan_.ranks() - 1) {
      step_ = -1;
      ++round_;
    }
  }

  void own_message(OpBatch& batch) {
    const KeySlice rows = plan_.messages.message(rank_, round_);
    own_.emplace_back(plan_.problem, plan_.tuning, plan_.partition,
                      RowPlace{rank_, rows, kHomeBuffer, rows.begin,
                               static_cast<int32_t>(round_) * plan_.states_of_own});
    pass_on(rank_, rows, kHomeBuffer, {}, batch);
    attend(own_.back(), {}, batch);
  }

  void received_message(int shard, OpBatch& batch) {
    const KeySlice rows = plan_.messages.message(shard, round_);
    const auto slot = static_cast<size_t>(received_++ % plan_.tuning.pipeline_depth);
    const int32_t buffer = first_buffer_ + static_cast<int32_t>(slot);
    Op op = query_op(OpKind::kReceive, shard, rows, buffer);
    op.peer = plan_.at(rank_, -1);
    op.lane = tracks_.receive_lane(kQueryTrack);
    op.step = step_ + 1;
    const LanePoint arrived = writer_.append(op, buffers_[slot], batch);
    buffers_[slot] = pass_on(shard, rows, buffer, {&arrived, 1}, batch);
    if (!plan_.is_needed(shard, round_, rank_)) return;
    buffers_[slot].push_back(answer(shard, rows, buffer, arrived, batch));
  }

  /// Attends the rows of another rank and turns the state into a partial result for it.
  LanePoint answer(int shard, KeySlice rows, int32_t buffer, LanePoint arrived, OpBatch& batch) {
    const auto slot = static_cast<size_t>(answered_++ % plan_.foreign_slots());
    const auto state = plan_.own_states() + static_cast<int32_t>(slot) * plan_.states_of_foreign;
    AttendWriter attends(plan_.problem, plan_.tuning, plan_.partition,
                         RowPlace{shard, rows, buffer, 0, state});
    Readers deps = foreign_[slot];
    deps.push_back(arrived);
    attend(attends, deps, batch);
    Partial partial{shard, round_, step_, shard, state, std::nullopt};
    if (plan_.tuning.is_deterministic) {
      partial.nodes = attends.nodes();
      partial.ready = writer_.last(kComputeLane);
    } else {
      partial.ready = attends.finalize_partial(step_ + 1, writer_, batch);
    }
    if (plan_.when == ReturnOfPartials::kAtOnce) {
      foreign_[slot] = give(partial, batch);
    } else {
      given_.push_back(partial);
    }
    return *partial.ready;
  }

  /// At this step another rank works on a message of this one; its answer will come.
  void expect_answer() {
    const int other = plan_.at(rank_, 1 + step_);
    if (round_ >= plan_.messages.messages_of(rank_) || plan_.last_step(rank_, round_) < step_ ||
        !plan_.is_needed(rank_, round_, other)) {
      return;
    }
    const auto slot = static_cast<int32_t>(expected_++ % std::max(plan_.answer_states(), 1));
    const int32_t state = plan_.own_states() + plan_.foreign_states() + slot;
    awaited_.push_back({rank_, round_, step_, other, state, std::nullopt});
  }

  /// Receives and merges what is awaited, all but the last `keep` answers: those are still under
  /// way, and merging them now would hold up computation.
  void collect_answers(size_t keep, OpBatch& batch) {
    while (awaited_.size() > keep) {
      const Partial partial = awaited_.front();
      awaited_.pop_front();
      if (plan_.tuning.is_deterministic) {
        collect_nodes(partial, batch);
        continue;
      }
      Readers& free = answers_[static_cast<size_t>(partial.state - plan_.own_states() -
                                                   plan_.foreign_states())];
      Op op = partial_op(OpKind::kReceive, partial);
      op.lane = tracks_.receive_lane(kPartialTrack);
      const LanePoint arrived = writer_.append(op, free, batch);
      AttendWriter& own = own_[static_cast<size_t>(partial.m)];
      free = {own.merge(partial.state, op.step, {&arrived, 1}, writer_, batch)};
    }
  }

  /// Nodes are received into free states of the own tree.
  void collect_nodes(const Partial& partial, OpBatch& batch) {
    AttendWriter& own = own_[static_cast<size_t>(partial.m)];
    int64_t number = 0;
    for (StateTree::Node node : plan_.nodes.at({rank_, partial.m, partial.peer})) {
      node.state = own.take_state();
      Op op = node_op(OpKind::kReceive, partial, node.state, number++);
      op.lane = tracks_.receive_lane(kPartialTrack);
      Readers deps = own.last_use(node.state);
      if (deps.empty()) deps = finished_;
      const LanePoint arrived = writer_.append(op, deps, batch);
      own.merge_node(node, op.step, arrived, writer_, batch);
    }
  }

  void finish(OpBatch& batch) {
    for (const Partial& partial : given_) {
      const int32_t slot = (partial.state - plan_.own_states()) / plan_.states_of_foreign;
      foreign_[static_cast<size_t>(slot)] = give(partial, batch);
    }
    collect_answers(0, batch);
    for (AttendWriter& own : own_) own.finalize(writer_, batch);
    if (writer_.last(kComputeLane).position >= 0) finished_ = {writer_.last(kComputeLane)};
    is_finished_ = true;
  }

  Readers give(const Partial& partial, OpBatch& batch) {
    Readers sent;
    const auto send = [&](Op op) {
      op.lane = tracks_.send_lane(kPartialTrack);
      sent.push_back(writer_.append(op, {&*partial.ready, 1}, batch));
    };
    if (!plan_.tuning.is_deterministic) send(partial_op(OpKind::kSend, partial));
    int64_t number = 0;
    for (const StateTree::Node& node : partial.nodes)
      send(node_op(OpKind::kSend, partial, node.state, number++));
    return sent;
  }

  Op node_op(OpKind kind, const Partial& partial, int32_t state, int64_t number) const {
    Op op = partial_op(kind, partial);
    op.payload = Payload::kState;
    op.bytes = payload_bytes(plan_.problem, op.payload, plan_.all_heads(), op.q_end - op.q_begin);
    const int64_t first = plan_.ranks() * plan_.messages.rounds();
    const int64_t of_rows = partial.shard * plan_.messages.rounds() + partial.m;
    op.message = first_message_ + first + of_rows * plan_.chunks() + number;
    op.state = state;
    return op;
  }

  Op partial_op(OpKind kind, const Partial& partial) const {
    const KeySlice rows = plan_.messages.message(partial.shard, partial.m);
    Op op = rows_op(plan_.problem, kind, Payload::kPartial, partial.shard, rows, plan_.all_heads());
    op.message =
        first_message_ + (plan_.ranks() + partial.shard) * plan_.messages.rounds() + partial.m;
    op.peer = partial.peer;
    op.state = partial.state;
    op.step = partial.step + 1;
    return op;
  }

  Op query_op(OpKind kind, int shard, KeySlice rows, int32_t buffer) const {
    Op op = rows_op(plan_.problem, kind, Payload::kQuery, shard, rows, plan_.all_heads());
    op.message = first_message_ + shard * plan_.messages.rounds() + round_;
    op.buffer = buffer;
    op.buffer_begin = buffer == kHomeBuffer ? rows.begin : 0;
    return op;
  }

  Readers pass_on(int shard, KeySlice rows, int32_t buffer, std::span<const LanePoint> deps,
                  OpBatch& batch) {
    if (plan_.last_step(shard, round_) <= step_) return {};
    Op op = query_op(OpKind::kSend, shard, rows, buffer);
    op.peer = plan_.at(rank_, 1);
    op.lane = tracks_.send_lane(kQueryTrack);
    op.step = step_ + 2;
    return {writer_.append(op, deps, batch)};
  }

  void attend(AttendWriter& attends, std::span<const LanePoint> deps, OpBatch& batch) {
    const KeySlice keys{0, plan_.partition.shard_tokens(rank_)};
    for (int64_t i = 0; i < plan_.messages.blocks_of(keys); ++i) {
      const KeySlice block = plan_.messages.block(keys, i);
      const AttendPlace place{rank_, block, kHomeBuffer, block.begin, step_ + 1};
      if (attends.append(place, deps, writer_, batch)) deps = {};  // The lane is in order.
    }
  }

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

/// Everything on the query side of the forward pass.
class QueryPart : public ForwardPart {
 public:
  QueryPart(const Problem& problem, const Tuning& tuning, const Partition& partition,
            ReturnOfPartials when)
      : plan_(problem, tuning, partition, when) {}

  std::unique_ptr<ForwardPhase> phase(int rank, RankTracks& tracks,
                                      int32_t first_buffer) const override {
    return std::make_unique<QueryForward>(plan_, rank, tracks, first_buffer);
  }
  /// Queries, and results or as many nodes of a tree.
  int64_t messages() const override {
    const int64_t answers = plan_.tuning.is_deterministic ? plan_.chunks() : 1;
    return (1 + answers) * plan_.ranks() * plan_.messages.rounds();
  }

  void add_storage(int rank, RankStorage& storage) const override {
    storage.states = 0;
    const auto heads = static_cast<int32_t>(plan_.problem.heads);
    const Tokens rows = plan_.messages.message_tokens();
    for (int64_t m = 0; m < plan_.messages.rounds(); ++m) {
      const bool is_own = m < plan_.messages.messages_of(rank);
      const KeySlice own = plan_.messages.message(rank, is_own ? m : 0);
      storage.shaped_states.insert(storage.shaped_states.end(),
                                   static_cast<size_t>(plan_.states_of_own),
                                   {is_own ? own.end - own.begin : 0, 0, heads});
    }
    const int others = plan_.foreign_states() + plan_.answer_states();
    storage.shaped_states.insert(storage.shaped_states.end(), static_cast<size_t>(others),
                                 {rows, 0, heads});
    const int buffers = plan_.ranks() > 1 ? plan_.tuning.pipeline_depth : 0;
    storage.shaped_buffers.assign(static_cast<size_t>(buffers),
                                  {Payload::kQuery, rows, 0, heads, -1});
  }

 private:
  QueryPlan plan_;
};

/// Backward, the query side walks as Q does forward; its gradients follow it round the ring, or go
/// straight home.
class QueryRouting : public CycleRouting {
 public:
  QueryRouting(const KvPlan& plan, ReturnOfPartials when)
      : CycleRouting(plan, {plan.ranks() - 1}), when_(when) {}
  bool gathers_home() const override { return when_ == ReturnOfPartials::kAtOnce; }
  int rotation() const override { return 0; }

 private:
  const ReturnOfPartials when_;
};

}  // namespace

std::unique_ptr<ProgramSource> make_query_ring(const Problem& problem, const Tuning& tuning,
                                               const Partition& partition, ReturnOfPartials when) {
  Tuning keys_stay = tuning;
  if (tuning.backward == BackwardMoves::kAuto) keys_stay.backward = BackwardMoves::kQueries;
  return make_kv_program(
      problem, keys_stay, partition,
      [when](const KvPlan& plan) { return std::make_unique<QueryRouting>(plan, when); },
      std::make_unique<QueryPart>(problem, tuning, partition, when));
}

}  // namespace ring
