// Routing of keys along closed cycles through all ranks; shared by the single and the multi-ring.
#pragma once

#include "core/strategies/kv_routing.h"

namespace ring {

/// Cycle c visits rank, rank + stride_c, rank + 2 stride_c, ... modulo the number of ranks, which
/// every stride must be coprime with. Message m walks cycle m modulo the number of cycles, on a
/// track of its own, and goes only as far as some rank on its way still needs it.
class CycleRouting : public KvRouting {
 public:
  CycleRouting(const KvPlan& plan, std::vector<int> strides);

  int tracks() const override { return static_cast<int>(strides_.size()); }
  int steps() const override { return plan_.ranks() - 1; }
  int rotation() const override { return 1; }
  int shard_at(int rank, int64_t m, int step) const override;
  int rank_at(int shard, int64_t m, int step) const override;
  int gradient_track(int, int, int64_t m) const override { return track_of(m); }
  bool arrives(int shard, int64_t m, int rank, int step, Hop& from) const override;
  void passes_on(int shard, int64_t m, int rank, int step, std::vector<Hop>& to) const override;

 private:
  int track_of(int64_t m) const;
  int at(int rank, int64_t hops, int64_t m) const;
  /// The last step at which the message arrives anywhere; -1 when nobody else needs it.
  int& last_step(int shard, int64_t m);
  int last_step(int shard, int64_t m) const;

  const KvPlan& plan_;
  const std::vector<int> strides_;
  std::vector<int> last_steps_;  // (shard, m)
};

}  // namespace ring
