// GradientWays: how the gradients of every message come home in the backward pass.
#pragma once

#include <vector>

#include "core/strategies/kv_routing.h"

namespace ring {

/// The steps of the first and the last rank that adds to the gradients of a message; -1: only its
/// owner does.
struct GradientSpan {
  int32_t first = -1, last = -1;
};

class GradientWays {
 public:
  /// Both must outlive this.
  GradientWays(const KvPlan& plan, const KvRouting& routing);

  GradientSpan span(int shard, int64_t m) const {
    return spans_[static_cast<size_t>(shard * plan_.messages.rounds() + m)];
  }
  /// Whether the rank that meets the message at this step sends gradients.
  bool sends(int shard, int64_t m, int step) const;
  /// The rank that they go to.
  int destination(int shard, int64_t m, int step) const;
  /// Bytes that all ranks send in a backward pass: what travels, and its gradients.
  Bytes bytes_sent() const;

 private:
  const KvPlan& plan_;
  const KvRouting& routing_;
  std::vector<GradientSpan> spans_;  // (shard, m)
};

/// What the op's side of a message and its gradients weigh.
Bytes travelling_bytes(const Problem& problem, Payload moves, Tokens tokens);
Bytes gradient_bytes(const Problem& problem, Payload moves, Tokens tokens);
/// The gradients of what moves.
constexpr Payload gradients_of(Payload moves) {
  return moves == Payload::kKeyValue ? Payload::kKeyGradients : Payload::kQueryGradients;
}

}  // namespace ring
