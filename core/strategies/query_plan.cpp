#include "core/strategies/query_plan.h"

#include <algorithm>

namespace ring {

QueryPlan::QueryPlan(const Problem& the_problem, const Tuning& the_tuning,
                     const Partition& the_partition, ReturnOfPartials when_to_return)
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

bool QueryPlan::is_needed(int shard, int64_t m, int rank) const {
  const KeySlice rows = messages.message(shard, m);
  return problem.mask.count_visible(slice(partition.shard(shard), rows.begin, rows.end),
                                    partition.shard(rank)) > 0;
}

void QueryPlan::count_states(int shard, int64_t m) {
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

void QueryPlan::add_chunks(int shard, int64_t m, int rank, StateTree& tree) const {
  const TokenRanges asking = rows(shard, m);
  const KeySlice keys{0, partition.shard_tokens(rank)};
  for (int64_t i = 0; i < messages.blocks_of(keys); ++i) {
    const KeySlice block = messages.block(keys, i);
    const TokenRanges tokens = slice(partition.shard(rank), block.begin, block.end);
    if (problem.mask.count_visible(asking, tokens) == 0) continue;
    tree.add(tokens.front().begin / tuning.block_tokens, tree.acquire());
  }
}

}  // namespace ring
