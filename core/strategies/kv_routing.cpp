#include "core/strategies/kv_routing.h"

#include <fmt/format.h>

#include <optional>

#include "core/error.h"
#include "core/strategies/attend_op.h"

namespace ring {

bool KvPlan::is_needed(int shard, int64_t m, int rank) const {
  const KeySlice keys = messages.message(shard, m);
  return problem.mask.count_visible(partition.shard(rank),
                                    slice(partition.shard(shard), keys.begin, keys.end)) > 0;
}

void require_forward(const Problem& problem, std::string_view strategy) {
  if (problem.pass == Pass::kForward) return;
  throw Error(ErrorKind::kUnavailable,
              fmt::format("strategy {} has no backward program yet", strategy),
              "use pass = \"forward\"");
}

int64_t strategy_parameter(const Tuning& tuning, int64_t missing) {
  const size_t colon = tuning.strategy.find(':');
  if (colon == std::string::npos) return missing;
  return parse_count(std::string_view(tuning.strategy).substr(colon + 1),
                     fmt::format("strategy '{}'", tuning.strategy));
}

namespace {

/// What must have read a receive buffer before it is free again.
using Readers = std::vector<LanePoint>;

struct Track {
  std::vector<Readers> buffers;
  int64_t received = 0, sent = 0;
};

class KvStream : public RankStream {
 public:
  KvStream(const KvPlan& plan, const KvRouting& routing, int rank)
      : plan_(plan),
        routing_(routing),
        rank_(rank),
        attends_(plan.problem, plan.tuning, plan.partition, rank),
        writer_(1 + 2 * plan.tuning.lanes * routing.tracks()),
        tracks_(static_cast<size_t>(routing.tracks())) {
    for (Track& track : tracks_) {
      track.buffers.resize(static_cast<size_t>(plan.tuning.pipeline_depth));
    }
  }

  bool next(OpBatch& batch) override {
    if (is_finished_) return false;
    const size_t before = batch.ops.size();
    while (batch.ops.size() == before && !is_finished_) advance(batch);
    return true;
  }

  int32_t states() const { return attends_.states(); }

 private:
  void advance(OpBatch& batch) {
    if (round_ == plan_.messages.rounds()) {
      attends_.finalize(writer_, batch);
      is_finished_ = true;
      return;
    }
    if (step_ < 0) {
      if (round_ < plan_.messages.messages_of(rank_)) own_message(batch);
    } else {
      const int shard = routing_.shard_at(rank_, round_, step_);
      Hop from;
      if (round_ < plan_.messages.messages_of(shard) &&
          routing_.arrives(shard, round_, rank_, step_, from)) {
        received_message(shard, from, batch);
      }
    }
    if (++step_ == routing_.steps()) {
      step_ = -1;
      ++round_;
    }
  }

  void own_message(OpBatch& batch) {
    const KeySlice keys = plan_.messages.message(rank_, round_);
    pass_on(rank_, keys, kHomeBuffer, {}, batch);
    attend(rank_, keys, kHomeBuffer, {}, batch);
  }

  void received_message(int shard, const Hop& from, OpBatch& batch) {
    const KeySlice keys = plan_.messages.message(shard, round_);
    Track& track = tracks_[static_cast<size_t>(from.track)];
    const int depth = plan_.tuning.pipeline_depth;
    const auto slot = static_cast<size_t>(track.received % depth);
    const auto buffer = static_cast<int32_t>(from.track * depth + static_cast<int>(slot));
    const LanePoint arrived = receive(shard, keys, buffer, from, track.buffers[slot], batch);
    track.buffers[slot] = pass_on(shard, keys, buffer, {&arrived, 1}, batch);
    if (const auto last = attend(shard, keys, buffer, {&arrived, 1}, batch)) {
      track.buffers[slot].push_back(*last);
    }
  }

  int32_t lane_of(int track, bool is_receive, int64_t count) const {
    const int lanes = plan_.tuning.lanes;
    return 1 + (2 * track + (is_receive ? 1 : 0)) * lanes + static_cast<int32_t>(count % lanes);
  }

  LanePoint receive(int shard, KeySlice keys, int32_t buffer, const Hop& from,
                    const Readers& readers, OpBatch& batch) {
    Op op = transfer_op(OpKind::kReceive, shard, keys, buffer);
    op.peer = from.rank;
    op.lane = lane_of(from.track, true, tracks_[static_cast<size_t>(from.track)].received++);
    op.step = step_ + 1;
    return writer_.append(op, readers, batch);
  }

  Readers pass_on(int shard, KeySlice keys, int32_t buffer, std::span<const LanePoint> deps,
                  OpBatch& batch) {
    hops_.clear();
    routing_.passes_on(shard, round_, rank_, step_, hops_);
    Readers points;
    for (const Hop& to : hops_) {
      Op op = transfer_op(OpKind::kSend, shard, keys, buffer);
      op.peer = to.rank;
      op.lane = lane_of(to.track, false, tracks_[static_cast<size_t>(to.track)].sent++);
      op.step = step_ + 2;  // The hop that this send makes.
      points.push_back(writer_.append(op, deps, batch));
    }
    return points;
  }

  Op transfer_op(OpKind kind, int shard, KeySlice keys, int32_t buffer) const {
    Op op;
    op.kind = kind;
    op.message = shard * plan_.messages.rounds() + round_;
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
      const AttendPlace place{shard, block, buffer, at, step_ + 1};
      if (const auto point = attends_.append(place, deps, writer_, batch)) last = point;
    }
    return last;
  }

  const KvPlan& plan_;
  const KvRouting& routing_;
  const int rank_;
  AttendWriter attends_;
  OpWriter writer_;
  std::vector<Track> tracks_;
  std::vector<Hop> hops_;
  int64_t round_ = 0;
  int step_ = -1;
  bool is_finished_ = false;
};

class KvSource : public ProgramSource {
 public:
  KvSource(const Problem& problem, const Tuning& tuning, const Partition& partition,
           const std::function<std::unique_ptr<KvRouting>(const KvPlan&)>& make_routing)
      : plan_(problem, tuning, partition), routing_(make_routing(plan_)) {}

  int ranks() const override { return plan_.ranks(); }
  int lanes() const override { return 1 + 2 * plan_.tuning.lanes * routing_->tracks(); }
  std::unique_ptr<RankStream> stream(int rank) const override {
    return std::make_unique<KvStream>(plan_, *routing_, rank);
  }

  const Problem* problem() const override { return &plan_.problem; }
  std::string name() const override { return plan_.tuning.strategy; }
  /// Equal shards under a full mask: only the numbers of ranks, shards and messages differ.
  int rotation() const override {
    if (plan_.problem.mask.kind() != "full" || plan_.tuning.is_deterministic) return 0;
    for (int rank = 1; rank < ranks(); ++rank) {
      if (plan_.partition.shard_tokens(rank) != plan_.partition.shard_tokens(0)) return 0;
    }
    return routing_->rotation();
  }

  RankStorage storage(int rank) const override {
    RankStorage storage;
    storage.query_tokens = plan_.partition.shard_tokens(rank);
    storage.home_tokens = plan_.partition.shard_tokens(rank);
    storage.buffer_tokens = plan_.messages.message_tokens();
    storage.buffers = plan_.ranks() > 1 ? plan_.tuning.pipeline_depth * routing_->tracks() : 0;
    if (plan_.tuning.is_deterministic) {
      KvStream stream(plan_, *routing_, rank);  // States held at once are known by going through.
      OpBatch batch;
      while (stream.next(batch)) batch.clear();
      storage.states = stream.states();
    }
    return storage;
  }

 private:
  KvPlan plan_;
  std::unique_ptr<KvRouting> routing_;
};

}  // namespace

std::unique_ptr<ProgramSource> make_kv_program(
    const Problem& problem, const Tuning& tuning, const Partition& partition,
    const std::function<std::unique_ptr<KvRouting>(const KvPlan&)>& make_routing) {
  return std::make_unique<KvSource>(problem, tuning, partition, make_routing);
}

}  // namespace ring
