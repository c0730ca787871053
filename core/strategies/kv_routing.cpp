#include "core/strategies/kv_routing.h"

#include <fmt/format.h>

#include "core/error.h"

namespace ring {

bool KvPlan::is_needed(int shard, int64_t m, int rank) const {
  const KeySlice part = messages.message(shard, m);
  const TokenRanges moving = slice(partition.shard(shard), part.begin, part.end);
  const TokenRanges& staying = partition.shard(rank);
  const int64_t pairs = moves == Payload::kKeyValue ? problem.mask.count_visible(staying, moving)
                                                    : problem.mask.count_visible(moving, staying);
  return pairs > 0;
}

void KvPlan::name_heads(Op& op, int group) const {
  if (head_groups == 0) return;
  op.head_begin = static_cast<int32_t>(heads(group).begin);
  op.head_end = static_cast<int32_t>(heads(group).end);
}

void require_arrival_order(const Tuning& tuning, std::string_view strategy) {
  if (!tuning.is_deterministic) return;
  throw_usage(fmt::format("strategy {} cannot be deterministic: it merges whole partial results, "
                          "which depend on how keys are cut among the ranks",
                          strategy),
              "leave out --deterministic, or use pass-q, pass-kv, all-gather-kv or ulysses");
}

int64_t strategy_parameter(const Tuning& tuning, int64_t missing) {
  const size_t colon = tuning.strategy.find(':');
  if (colon == std::string::npos) return missing;
  return parse_count(std::string_view(tuning.strategy).substr(colon + 1),
                     fmt::format("strategy '{}'", tuning.strategy));
}

}  // namespace ring
