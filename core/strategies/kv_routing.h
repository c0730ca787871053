// KvRouting: the way key blocks take from their owner to the ranks that need them.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

#include "core/payload.h"
#include "core/ring_program.h"
#include "core/strategies/forward_phase.h"
#include "core/strategies/shard_messages.h"

namespace ring {

/// What all ranks share: the problem, its cut into messages, and who needs what.
struct KvPlan {
  /// `what_moves` is kKeyValue, or kQuerySide in a backward pass in which keys stay.
  /// `the_head_groups` divides the KV heads, or is 0.
  KvPlan(const Problem& the_problem, const Tuning& the_tuning, const Partition& the_partition,
         int the_head_groups, Payload what_moves = Payload::kKeyValue)
      : problem(the_problem),
        tuning(the_tuning),
        partition(the_partition),
        head_groups(the_head_groups),
        moves(what_moves),
        messages(partition, the_tuning) {}
  KvPlan(const KvPlan&) = delete;  // `messages` refers to `partition`.
  KvPlan& operator=(const KvPlan&) = delete;

  int ranks() const { return partition.ranks(); }
  /// Whether `rank` sees any key of message m of the shard, or holds a key that any query of it
  /// sees.
  bool is_needed(int shard, int64_t m, int rank) const;

  /// How often the messages are sent in a phase, with other heads each time.
  int groups() const { return std::max(1, head_groups); }
  /// The query heads of a group.
  HeadRange heads(int group) const {
    const int64_t count = problem.heads / groups();
    return {group * count, (group + 1) * count};
  }
  /// Names the heads of the group, where the heads are grouped.
  void name_heads(Op& op, int group) const;
  int64_t messages_of_phase() const { return groups() * ranks() * messages.rounds(); }
  int64_t message_number(int group, int shard, int64_t m) const {
    return (int64_t{group} * ranks() + shard) * messages.rounds() + m;
  }

  const Problem problem;
  const Tuning tuning;
  const Partition partition;
  /// Equal groups of KV heads that travel one after the other, in shaped buffers; 0: all heads
  /// travel together, in uniform ones.
  const int head_groups;
  const Payload moves;
  const ShardMessages messages;
};

/// One step of a message on its way.
struct Hop {
  int rank = -1;  ///< Where it goes, or comes from.
  int track = 0;  ///< Which of the routing's tracks carries it; each has lanes and buffers.
};

/// Where message m of a shard goes. A routing is a tree per message: each rank receives it from
/// one rank at most and passes it to any number. Every rank works through the rounds m and, within
/// a round, through its own message and then steps 0 .. steps() - 1; at each step it meets one
/// shard. Sends and receives of a track must meet in the same order on both sides.
class KvRouting {
 public:
  virtual ~KvRouting() = default;
  /// Independent tracks; a track has `lanes` send and receive lanes and `depth` buffers of its own.
  virtual int tracks() const { return 1; }
  virtual int steps() const = 0;
  /// Ranks after which the way of the messages repeats itself when all need all; 0: it does not.
  virtual int rotation() const { return 0; }
  /// The shard whose message the rank receives at this step.
  virtual int shard_at(int rank, int64_t m, int step) const = 0;
  /// The rank that receives message m of the shard at this step.
  virtual int rank_at(int shard, int64_t m, int step) const = 0;
  /// Whether the message comes to the rank at this step, and from where.
  virtual bool arrives(int shard, int64_t m, int rank, int step, Hop& from) const = 0;
  /// Where the rank passes the message on; step -1 is the rank's own message.
  virtual void passes_on(int shard, int64_t m, int rank, int step, std::vector<Hop>& to) const = 0;

  /// Backward: true when every rank sends its share of the gradients straight to the owner of the
  /// message; false when shares are added up along the way, in the order of the steps, and the last
  /// one takes them home.
  virtual bool gathers_home() const { return false; }
  /// Which track carries gradients between two ranks.
  virtual int gradient_track(int from, int to, int64_t m) const = 0;
};

/// The program in which keys travel by the routing and queries stay; in the backward pass the
/// gradients of keys travel one step behind them, or the query side travels with its gradients,
/// whichever is fewer bytes unless the tuning says which.
/// `make_routing` is called with the plan, which outlives the routing. `forward` replaces the
/// forward pass. With `head_groups`, keys travel in both passes, and the routing has one track and
/// gathers home. Throws Error(kUsage) for a deterministic backward pass on more than one rank.
std::unique_ptr<ProgramSource> make_kv_program(
    const Problem& problem, const Tuning& tuning, const Partition& partition,
    const std::function<std::unique_ptr<KvRouting>(const KvPlan&)>& make_routing,
    std::unique_ptr<ForwardPart> forward = nullptr, int head_groups = 0);

/// Throws Error(kUsage) in deterministic mode: partial results that travel are merged as they come.
void require_arrival_order(const Tuning& tuning, std::string_view strategy);

/// The number behind the colon of a strategy such as "double-ring:4"; `missing` when there is none.
int64_t strategy_parameter(const Tuning& tuning, int64_t missing);

}  // namespace ring
