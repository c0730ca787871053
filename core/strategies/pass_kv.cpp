#include "core/strategies/pass_kv.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "core/error.h"
#include "core/strategies/attend_op.h"
#include "core/strategies/shard_messages.h"
#include "core/strategies/state_tree.h"

namespace ring {
namespace {

/// What all ranks share: sizes, and how far each message must walk.
class Plan {
 public:
  Plan(const Problem& the_problem, const Tuning& the_tuning, const Partition& the_partition)
      : problem(the_problem),
        tuning(the_tuning),
        partition(the_partition),
        messages(partition, the_tuning) {
    const int64_t rounds = messages.rounds();
    last_hop_.assign(static_cast<size_t>(ranks() * rounds), -1);
    for (int shard = 0; shard < ranks(); ++shard) {
      for (int64_t m = 0; m < messages.messages_of(shard); ++m) find_last_hop(shard, m);
    }
  }

  Plan(const Plan&) = delete;  // `messages` refers to `partition`.
  Plan& operator=(const Plan&) = delete;

  int ranks() const { return partition.ranks(); }
  /// The last hop (0-based) that message m of the shard makes; -1 when nobody else needs it.
  int last_hop(int shard, int64_t m) const {
    return last_hop_[static_cast<size_t>(shard * messages.rounds() + m)];
  }
  int64_t message_id(int shard, int64_t m) const { return shard * messages.rounds() + m; }

  const Problem problem;
  const Tuning tuning;
  const Partition partition;
  const ShardMessages messages;

 private:
  void find_last_hop(int shard, int64_t m) {
    const KeySlice keys = messages.message(shard, m);
    const TokenRanges key_ranges = slice(partition.shard(shard), keys.begin, keys.end);
    for (int hop = ranks() - 2; hop >= 0; --hop) {
      const int rank = (shard + 1 + hop) % ranks();
      if (problem.mask.count_visible(partition.shard(rank), key_ranges) == 0) continue;
      last_hop_[static_cast<size_t>(shard * messages.rounds() + m)] = hop;
      return;
    }
  }

  std::vector<int> last_hop_;
};

/// Where a received message lies, and what must have read it before its buffer is free again.
struct Slot {
  std::optional<LanePoint> last_read;
  std::optional<LanePoint> forwarded;
};

class PassKvStream : public RankStream {
 public:
  PassKvStream(const Plan& plan, int rank)
      : plan_(plan),
        rank_(rank),
        attends_(plan.problem, plan.tuning, plan.partition, rank),
        writer_(1 + 2 * plan.tuning.lanes),
        slots_(static_cast<size_t>(plan.tuning.pipeline_depth)) {}

  bool next(OpBatch& batch) override {
    if (is_finished_) return false;
    const size_t before = batch.ops.size();
    while (batch.ops.size() == before && !is_finished_) advance(batch);
    return true;
  }

  int32_t states() const { return attends_.states(); }

 private:
  /// One message at one hop; hop -1 is the rank's own.
  void advance(OpBatch& batch) {
    if (round_ == plan_.messages.rounds()) {
      attends_.finalize(writer_, batch);
      is_finished_ = true;
      return;
    }
    const int ranks = plan_.ranks();
    const int shard = ((rank_ - 1 - hop_) % ranks + ranks) % ranks;
    if (round_ < plan_.messages.messages_of(shard)) {
      if (hop_ < 0) {
        own_message(batch);
      } else if (plan_.last_hop(shard, round_) >= hop_) {
        received_message(shard, batch);
      }
    }
    if (++hop_ == ranks - 1) {
      hop_ = -1;
      ++round_;
    }
  }

  void own_message(OpBatch& batch) {
    const KeySlice keys = plan_.messages.message(rank_, round_);
    if (plan_.last_hop(rank_, round_) >= 0) send(rank_, keys, kHomeBuffer, {}, batch);
    attend(rank_, keys, kHomeBuffer, {}, batch);
  }

  void received_message(int shard, OpBatch& batch) {
    const KeySlice keys = plan_.messages.message(shard, round_);
    const int32_t buffer = static_cast<int32_t>(received_ % plan_.tuning.pipeline_depth);
    Slot& slot = slots_[static_cast<size_t>(buffer)];
    const LanePoint arrived = receive(shard, keys, buffer, slot, batch);
    slot = Slot();
    if (plan_.last_hop(shard, round_) > hop_) {
      slot.forwarded = send(shard, keys, buffer, {&arrived, 1}, batch);
    }
    slot.last_read = attend(shard, keys, buffer, {&arrived, 1}, batch);
  }

  LanePoint receive(int shard, KeySlice keys, int32_t buffer, const Slot& slot, OpBatch& batch) {
    std::vector<LanePoint> deps;
    if (slot.last_read) deps.push_back(*slot.last_read);
    if (slot.forwarded) deps.push_back(*slot.forwarded);
    Op op = transfer_op(OpKind::kReceive, shard, keys, buffer);
    op.peer = (rank_ - 1 + plan_.ranks()) % plan_.ranks();
    op.lane = 1 + plan_.tuning.lanes + static_cast<int32_t>(received_++ % plan_.tuning.lanes);
    op.step = hop_ + 1;
    return writer_.append(op, deps, batch);
  }

  LanePoint send(int shard, KeySlice keys, int32_t buffer, std::span<const LanePoint> deps,
                 OpBatch& batch) {
    Op op = transfer_op(OpKind::kSend, shard, keys, buffer);
    op.peer = (rank_ + 1) % plan_.ranks();
    op.lane = 1 + static_cast<int32_t>(sent_++ % plan_.tuning.lanes);
    op.step = hop_ + 2;  // The hop that this send makes.
    return writer_.append(op, deps, batch);
  }

  Op transfer_op(OpKind kind, int shard, KeySlice keys, int32_t buffer) const {
    Op op;
    op.kind = kind;
    op.message = plan_.message_id(shard, round_);
    op.bytes = plan_.problem.kv_bytes(keys.end - keys.begin);
    op.buffer = buffer;
    op.kv_shard = shard;
    op.kv_begin = keys.begin;
    op.kv_end = keys.end;
    op.buffer_begin = buffer == kHomeBuffer ? keys.begin : 0;
    return op;
  }

  std::optional<LanePoint> attend(int shard, KeySlice keys, int32_t buffer,
                                  std::span<const LanePoint> deps, OpBatch& batch) {
    std::optional<LanePoint> last;
    for (int64_t i = 0; i < plan_.messages.blocks_of(keys); ++i) {
      const KeySlice block = plan_.messages.block(keys, i);
      const int64_t at = buffer == kHomeBuffer ? block.begin : block.begin - keys.begin;
      const AttendPlace place{shard, block, buffer, at, hop_ + 1};
      if (const auto point = attends_.append(place, deps, writer_, batch)) last = point;
    }
    return last;
  }

  const Plan& plan_;
  const int rank_;
  AttendWriter attends_;
  OpWriter writer_;
  std::vector<Slot> slots_;
  int64_t round_ = 0;
  int hop_ = -1;
  int64_t received_ = 0, sent_ = 0;
  bool is_finished_ = false;
};

class PassKvSource : public ProgramSource {
 public:
  PassKvSource(const Problem& problem, const Tuning& tuning, const Partition& partition)
      : plan_(problem, tuning, partition) {}

  int ranks() const override { return plan_.ranks(); }
  int lanes() const override { return 1 + 2 * plan_.tuning.lanes; }
  std::unique_ptr<RankStream> stream(int rank) const override {
    return std::make_unique<PassKvStream>(plan_, rank);
  }

  RankStorage storage(int rank) const override {
    RankStorage storage;
    storage.query_tokens = plan_.partition.shard_tokens(rank);
    storage.home_tokens = plan_.partition.shard_tokens(rank);
    storage.buffer_tokens = plan_.messages.message_tokens();
    storage.buffers = plan_.ranks() > 1 ? plan_.tuning.pipeline_depth : 0;
    if (plan_.tuning.is_deterministic) {
      PassKvStream stream(plan_, rank);  // The states held at once are known by going through.
      OpBatch batch;
      while (stream.next(batch)) batch.clear();
      storage.states = stream.states();
    }
    return storage;
  }

 private:
  Plan plan_;
};

std::unique_ptr<ProgramSource> make(const Problem& problem, const Tuning& tuning,
                                    const Partition& partition) {
  if (problem.pass != Pass::kForward) {
    throw Error(ErrorKind::kUnavailable, "strategy pass-kv has no backward program yet",
                "use pass = \"forward\"");
  }
  return std::make_unique<PassKvSource>(problem, tuning, partition);
}

}  // namespace

Strategy pass_kv_strategy() {
  return {"pass-kv", "K and V blocks walk round the ring, queries stay", make};
}

}  // namespace ring
