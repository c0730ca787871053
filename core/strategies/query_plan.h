// QueryPlan: who answers whose queries in a ring in which they travel, and in which states.
#pragma once

#include <map>
#include <tuple>
#include <vector>

#include "core/payload.h"
#include "core/strategies/attend_op.h"
#include "core/strategies/query_ring.h"
#include "core/strategies/shard_messages.h"
#include "core/strategies/state_tree.h"

namespace ring {

/// Who needs what, and how states are numbered: first one per own message, then those for the
/// queries of others, then those that answers are received into.
struct QueryPlan {
  QueryPlan(const Problem& the_problem, const Tuning& the_tuning, const Partition& the_partition,
            ReturnOfPartials when_to_return);
  QueryPlan(const QueryPlan&) = delete;  // `messages` refers to `partition`.
  QueryPlan& operator=(const QueryPlan&) = delete;

  int ranks() const { return partition.ranks(); }
  HeadRange all_heads() const { return {0, problem.heads}; }
  /// The rank `hops` hops on. Queries go to the rank before, whose keys causal masks let them see.
  int at(int rank, int hops) const { return ((rank - hops) % ranks() + ranks()) % ranks(); }
  bool is_needed(int shard, int64_t m, int rank) const;
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
  void count_states(int shard, int64_t m);
  void add_chunks(int shard, int64_t m, int rank, StateTree& tree) const;
};

}  // namespace ring
