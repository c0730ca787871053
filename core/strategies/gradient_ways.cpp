#include "core/strategies/gradient_ways.h"

namespace ring {

GradientWays::GradientWays(const KvPlan& plan, const KvRouting& routing)
    : plan_(plan), routing_(routing) {
  spans_.resize(static_cast<size_t>(plan.ranks() * plan.messages.rounds()));
  for (int shard = 0; shard < plan.ranks(); ++shard) {
    for (int64_t m = 0; m < plan.messages.messages_of(shard); ++m) {
      GradientSpan& span = spans_[static_cast<size_t>(shard * plan.messages.rounds() + m)];
      for (int step = 0; step < routing.steps(); ++step) {
        if (!plan.is_needed(shard, m, routing.rank_at(shard, m, step))) continue;
        if (span.first < 0) span.first = step;
        span.last = step;
      }
    }
  }
}

bool GradientWays::sends(int shard, int64_t m, int step) const {
  const GradientSpan on_way = span(shard, m);
  if (on_way.first < 0 || step < on_way.first || step > on_way.last) return false;
  return !routing_.gathers_home() || plan_.is_needed(shard, m, routing_.rank_at(shard, m, step));
}

int GradientWays::destination(int shard, int64_t m, int step) const {
  if (routing_.gathers_home() || step == span(shard, m).last) return shard;
  return routing_.rank_at(shard, m, step + 1);
}

Bytes GradientWays::bytes_sent() const {
  Bytes sum = 0;
  Hop from;
  for (int shard = 0; shard < plan_.ranks(); ++shard) {
    for (int64_t m = 0; m < plan_.messages.messages_of(shard); ++m) {
      const KeySlice part = plan_.messages.message(shard, m);
      const Tokens tokens = part.end - part.begin;
      for (int step = 0; step < routing_.steps(); ++step) {
        if (routing_.arrives(shard, m, routing_.rank_at(shard, m, step), step, from))
          sum += travelling_bytes(plan_.problem, plan_.moves, tokens);
        if (sends(shard, m, step)) sum += gradient_bytes(plan_.problem, plan_.moves, tokens);
      }
    }
  }
  return sum;
}

Bytes travelling_bytes(const Problem& problem, Payload moves, Tokens tokens) {
  return moves == Payload::kKeyValue ? problem.kv_bytes(tokens) : problem.query_side_bytes(tokens);
}

Bytes gradient_bytes(const Problem& problem, Payload moves, Tokens tokens) {
  return moves == Payload::kKeyValue ? problem.key_gradient_bytes(tokens)
                                     : problem.query_gradient_bytes(tokens);
}

}  // namespace ring
