#include "core/strategies/query_ring.h"

#include "core/strategies/cycle_routing.h"
#include "core/strategies/query_forward.h"

namespace ring {
namespace {

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
