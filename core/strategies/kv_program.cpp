// The program source of strategies that move keys by a routing: its phases, one after another.
#include <fmt/format.h>

#include <optional>

#include "core/error.h"
#include "core/strategies/backward_op.h"
#include "core/strategies/gradient_ways.h"
#include "core/strategies/kv_backward.h"
#include "core/strategies/kv_forward.h"
#include "core/strategies/kv_routing.h"

namespace ring {
namespace {

using MakeRouting = std::function<std::unique_ptr<KvRouting>(const KvPlan&)>;

/// One side that travels in the backward pass.
struct BackwardWay {
  BackwardWay(const KvPlan& forward, Payload moves, const MakeRouting& make_routing)
      : plan(forward.problem, forward.tuning, forward.partition, forward.head_groups, moves),
        routing(make_routing(plan)),
        ways(plan, *routing) {}

  KvPlan plan;
  std::unique_ptr<KvRouting> routing;
  GradientWays ways;
};

/// The phases of a rank: forward, backward, both as often as gradients are accumulated.
class KvStream : public RankStream {
 public:
  KvStream(const KvPlan& plan, const KvRouting& routing, const BackwardWay* backward,
           const ForwardPart* part, int32_t buffers, int rank)
      : plan_(plan),
        way_(backward),
        rank_(rank),
        groups_(plan.head_groups > 0 ? std::make_unique<GroupBuffers>(plan, routing, rank)
                                     : nullptr),
        tracks_(plan.tuning, routing.tracks(), backward != nullptr || part != nullptr,
                groups_.get()),
        forward_(part != nullptr ? part->phase(rank, tracks_, buffers)
                                 : std::make_unique<KvForward>(plan, routing, rank, tracks_)),
        forward_messages_(part != nullptr ? part->messages() : plan.messages_of_phase()) {}

  bool next(OpBatch& batch) override {
    const size_t before = batch.ops.size();
    while (batch.ops.size() == before) {
      if (!is_in_phase_ && !begin_phase(batch)) break;
      const bool has_more = backward_ ? backward_->next(batch) : forward_->next(batch);
      if (!has_more) end_phase();
    }
    for (size_t i = before; i < batch.ops.size(); ++i) batch.ops[i].micro_step = micro_step_;
    return batch.ops.size() > before;
  }

  int32_t states() const { return forward_->states(); }

 private:
  /// False when there is no further phase; the optimizer gap is appended on the way there.
  bool begin_phase(OpBatch& batch) {
    const Pass pass = plan_.problem.pass;
    if (micro_step_ == plan_.tuning.accumulation_steps) return end_step(batch);
    const int64_t first = micro_step_ * (forward_messages_ + 2 * plan_.messages_of_phase());
    is_in_phase_ = true;
    if (has_forward(pass) && !is_backward_next_) {
      forward_->begin(first);
    } else {
      backward_.emplace(way_->plan, *way_->routing, way_->ways, rank_, tracks_,
                        KvBackward::Numbers{first + forward_messages_, micro_step_ == 0});
    }
    return true;
  }

  void end_phase() {
    is_backward_next_ = !backward_ && way_ != nullptr;
    if (!is_backward_next_) ++micro_step_;
    backward_.reset();
    is_in_phase_ = false;
  }

  bool end_step(OpBatch& batch) {
    if (!is_finished_) append_optimizer_gap(plan_.tuning, tracks_.writer(), batch);
    is_finished_ = true;
    return false;
  }

  const KvPlan& plan_;
  const BackwardWay* way_;
  const int rank_;
  const std::unique_ptr<GroupBuffers> groups_;
  RankTracks tracks_;
  const std::unique_ptr<ForwardPhase> forward_;
  const int64_t forward_messages_;
  std::optional<KvBackward> backward_;
  int32_t micro_step_ = 0;
  bool is_in_phase_ = false, is_backward_next_ = false, is_finished_ = false;
};

class KvSource : public ProgramSource {
 public:
  KvSource(const Problem& problem, const Tuning& tuning, const Partition& partition,
           const MakeRouting& make_routing, std::unique_ptr<ForwardPart> forward, int head_groups)
      : plan_(problem, tuning, partition, head_groups),
        routing_(make_routing(plan_)),
        forward_(std::move(forward)) {
    if (!has_backward(problem.pass)) return;
    if (tuning.is_deterministic && ranks() > 1) refuse_deterministic_gradients();
    choose_backward(make_routing);
  }

  int ranks() const override { return plan_.ranks(); }
  int lanes() const override {
    return RankTracks::lanes_of(plan_.tuning, routing_->tracks(),
                                backward_ != nullptr || forward_ != nullptr);
  }
  std::unique_ptr<RankStream> stream(int rank) const override { return kv_stream(rank); }

  const Problem* problem() const override { return &plan_.problem; }
  std::string name() const override { return plan_.tuning.strategy; }
  std::vector<std::string> notes() const override { return notes_; }
  /// Equal shards under a full mask: only the numbers of ranks, shards and messages differ.
  int rotation() const override {
    if (plan_.problem.mask.kind() != "full" || plan_.tuning.is_deterministic || forward_) return 0;
    for (int rank = 1; rank < ranks(); ++rank) {
      if (plan_.partition.shard_tokens(rank) != plan_.partition.shard_tokens(0)) return 0;
    }
    return routing_->rotation();
  }

  RankStorage storage(int rank) const override {
    RankStorage storage;
    storage.query_tokens = plan_.partition.shard_tokens(rank);
    storage.home_tokens = plan_.partition.shard_tokens(rank);
    if (plan_.head_groups > 0) {
      storage.shaped_buffers = GroupBuffers(plan_, *routing_, rank).shapes();
    } else {
      add_uniform_buffers(storage);
    }
    if (forward_ && has_forward(plan_.problem.pass)) forward_->add_storage(rank, storage);
    if (plan_.tuning.is_deterministic && !forward_) {
      const auto stream = kv_stream(rank);  // States held at once are known by going through.
      OpBatch batch;
      while (stream->next(batch)) batch.clear();
      storage.states = stream->states();
    }
    return storage;
  }

 private:
  std::unique_ptr<KvStream> kv_stream(int rank) const {
    return std::make_unique<KvStream>(plan_, *routing_, backward_.get(), forward_.get(),
                                      key_buffers(), rank);
  }

  void add_uniform_buffers(RankStorage& storage) const {
    storage.buffer_tokens = plan_.messages.message_tokens();
    storage.buffers = key_buffers();
    if (backward_ && plan_.ranks() > 1) {
      storage.gradients = gradients_of(backward_->plan.moves);
      storage.gradient_tokens = plan_.messages.message_tokens();
      storage.gradient_buffers = RankTracks::gradient_buffers(plan_.tuning, routing_->tracks());
    }
    if (backward_ && backward_->plan.moves == Payload::kQuerySide) {
      storage.query_buffer_tokens = plan_.messages.message_tokens();
      storage.query_buffers = received();
    }
  }

  /// Receive buffers of what travels.
  int32_t received() const {
    return ranks() > 1 ? plan_.tuning.pipeline_depth * routing_->tracks() : 0;
  }
  int32_t key_buffers() const {
    const bool moves_forward = has_forward(plan_.problem.pass) && !forward_;
    const bool moves_backward = backward_ && backward_->plan.moves == Payload::kKeyValue;
    return moves_forward || moves_backward ? received() : 0;
  }

  [[noreturn]] void refuse_deterministic_gradients() const {
    throw_usage(
        fmt::format("strategy {} cannot be deterministic in the backward pass: gradients are "
                    "summed rank by rank, so their last bits depend on the number of ranks",
                    plan_.tuning.strategy),
        "gradients are the same in every run of one ring in any case; ulysses and tensor-parallel "
        "compute them for all tokens on one rank");
  }

  /// The side whose travel is fewer bytes, unless the tuning says which.
  void choose_backward(const MakeRouting& make_routing) {
    const auto way = [&](Payload moves) {
      return std::make_unique<BackwardWay>(plan_, moves, make_routing);
    };
    const BackwardMoves wanted =
        plan_.head_groups > 0 ? BackwardMoves::kKeys : plan_.tuning.backward;
    auto keys = wanted == BackwardMoves::kQueries ? nullptr : way(Payload::kKeyValue);
    auto queries = wanted == BackwardMoves::kKeys ? nullptr : way(Payload::kQuerySide);
    if (!keys || !queries) {
      backward_ = std::move(keys ? keys : queries);
      return;
    }
    const Bytes key_bytes = keys->ways.bytes_sent(), query_bytes = queries->ways.bytes_sent();
    const bool keys_move = key_bytes <= query_bytes;
    backward_ = std::move(keys_move ? keys : queries);
    if (key_bytes == 0 && query_bytes == 0) return;  // Nothing travels.
    const std::string of_keys = fmt::format("K and V with dK and dV ({})", format_bytes(key_bytes));
    const std::string of_queries =
        fmt::format("Q, dO, lse and delta with dQ ({})", format_bytes(query_bytes));
    notes_.push_back(fmt::format(
        "backward: {} travel, which is {} than {}; heads per KV head: {}",
        keys_move ? of_keys : of_queries, key_bytes == query_bytes ? "no more" : "less",
        keys_move ? of_queries : of_keys, plan_.problem.heads / plan_.problem.kv_heads));
  }

  KvPlan plan_;
  std::unique_ptr<KvRouting> routing_;
  std::unique_ptr<ForwardPart> forward_;
  std::unique_ptr<BackwardWay> backward_;
  std::vector<std::string> notes_;
};

}  // namespace

std::unique_ptr<ProgramSource> make_kv_program(const Problem& problem, const Tuning& tuning,
                                               const Partition& partition,
                                               const MakeRouting& make_routing,
                                               std::unique_ptr<ForwardPart> forward,
                                               int head_groups) {
  return std::make_unique<KvSource>(problem, tuning, partition, make_routing, std::move(forward),
                                    head_groups);
}

}  // namespace ring
