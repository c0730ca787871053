#include "core/strategies/cycle_routing.h"

namespace ring {

CycleRouting::CycleRouting(const KvPlan& plan, std::vector<int> strides)
    : plan_(plan), strides_(std::move(strides)) {
  const int64_t rounds = plan.messages.rounds();
  last_steps_.assign(static_cast<size_t>(plan.ranks() * rounds), -1);
  for (int shard = 0; shard < plan.ranks(); ++shard) {
    for (int64_t m = 0; m < plan.messages.messages_of(shard); ++m) {
      int step = plan.ranks() - 2;
      while (step >= 0 && !plan.is_needed(shard, m, at(shard, step + 1, m))) --step;
      last_step(shard, m) = step;
    }
  }
}

int CycleRouting::track_of(int64_t m) const {
  return static_cast<int>(m % static_cast<int64_t>(strides_.size()));
}

int CycleRouting::at(int rank, int64_t hops, int64_t m) const {
  const int64_t ranks = plan_.ranks();
  const int64_t place = (rank + hops * strides_[static_cast<size_t>(track_of(m))]) % ranks;
  return static_cast<int>((place + ranks) % ranks);
}

int& CycleRouting::last_step(int shard, int64_t m) {
  return last_steps_[static_cast<size_t>(shard * plan_.messages.rounds() + m)];
}

int CycleRouting::last_step(int shard, int64_t m) const {
  return last_steps_[static_cast<size_t>(shard * plan_.messages.rounds() + m)];
}

int CycleRouting::shard_at(int rank, int64_t m, int step) const { return at(rank, -1 - step, m); }

int CycleRouting::rank_at(int shard, int64_t m, int step) const { return at(shard, step + 1, m); }

bool CycleRouting::arrives(int shard, int64_t m, int rank, int step, Hop& from) const {
  if (last_step(shard, m) < step) return false;
  from = {at(rank, -1, m), track_of(m)};
  return true;
}

void CycleRouting::passes_on(int shard, int64_t m, int rank, int step, std::vector<Hop>& to) const {
  if (last_step(shard, m) > step) to.push_back({at(rank, 1, m), track_of(m)});
}

}  // namespace ring
