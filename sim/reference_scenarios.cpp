#include "sim/reference_scenarios.h"

#include <fmt/format.h>

#include "core/error.h"

namespace ring {

namespace {

Picoseconds extra_ps(int64_t rank, int64_t step) {
  return (7919 * rank + 104729 * step) % 1'000'003 * 1000;
}

/// What the streams of a scenario share.
struct RingPlan {
  explicit RingPlan(const RingScenario& the_scenario)
      : scenario(the_scenario), message_bytes(the_scenario.bytes / the_scenario.messages) {}

  const RingScenario scenario;
  const Bytes message_bytes;
  const Op blank;  ///< Copying it is quicker than making one.
};

/// One step a batch. With one message per step every op waits for the two other lanes; with more, a
/// last op of no time on the compute lane waits for all transfers, and all others wait for it.
class RingScenarioStream : public RankStream {
 public:
  RingScenarioStream(const RingPlan& plan, int rank) : plan_(plan), rank_(rank) {}

  bool next(OpBatch& batch) override {
    const RingScenario& scenario = plan_.scenario;
    if (step_ == scenario.ranks - 1) return false;
    const int32_t after = rank_ + 1 < scenario.ranks ? rank_ + 1 : 0;
    const int32_t before = rank_ > 0 ? rank_ - 1 : scenario.ranks - 1;
    const int32_t messages = scenario.messages;
    const bool joins = messages > 1;
    const size_t first = batch.ops.size();
    batch.ops.resize(first + static_cast<size_t>(2 * messages + (joins ? 2 : 1)), plan_.blank);
    Op* op = &batch.ops[first];
    for (int32_t m = 0; m < messages; ++m) transfer(*op++, OpKind::kSend, 1 + m, after, m, batch);
    place(*op, kComputeLane, batch);
    op->lane_position = joins ? 2 * int64_t{step_} : step_;
    op->fixed_ps = scenario.compute_ps + (scenario.is_irregular ? extra_ps(rank_, step_) : 0);
    ++op;
    for (int32_t m = 0; m < messages; ++m) {
      transfer(*op++, OpKind::kReceive, 1 + messages + m, before, m, batch);
    }
    if (joins) join(*op, batch);
    ++step_;
    return true;
  }

 private:
  void transfer(Op& op, OpKind kind, int32_t lane, int32_t peer, int64_t message,
                OpBatch& batch) const {
    place(op, lane, batch);
    op.kind = kind;
    op.protocol = plan_.scenario.protocol;
    op.peer = peer;
    op.message = int64_t{step_} * plan_.scenario.messages + message;
    op.bytes = plan_.message_bytes;
  }

  /// Onto its lane, after the step before this one.
  void place(Op& op, int32_t lane, OpBatch& batch) const {
    op.lane = lane;
    op.lane_position = step_;
    op.step = step_;
    const size_t first = batch.deps.size();
    op.dep_begin = static_cast<int64_t>(first);
    if (step_ == 0) return;
    if (plan_.scenario.messages > 1) {
      if (lane == kComputeLane) return;
      batch.deps.push_back({kComputeLane, 2 * int64_t{step_} - 1});
      op.dep_count = 1;
      return;
    }
    op.dep_count = 2;
    batch.deps.resize(first + 2);
    LanePoint* dep = &batch.deps[first];
    for (int32_t other = 0; other < 3; ++other) {
      if (other != lane) *dep++ = {other, step_ - 1};
    }
  }

  void join(Op& op, OpBatch& batch) const {
    op.step = step_;
    op.lane_position = 2 * int64_t{step_} + 1;
    op.dep_begin = static_cast<int64_t>(batch.deps.size());
    op.dep_count = 2 * plan_.scenario.messages;
    for (int32_t lane = 1; lane <= op.dep_count; ++lane) batch.deps.push_back({lane, step_});
  }

  const RingPlan& plan_;
  const int32_t rank_;
  int32_t step_ = 0;
};

class RingScenarioSource : public ProgramSource {
 public:
  explicit RingScenarioSource(const RingScenario& scenario) : plan_(scenario) {}
  int ranks() const override { return plan_.scenario.ranks; }
  int lanes() const override { return 1 + 2 * plan_.scenario.messages; }
  RankStorage storage(int) const override { return {}; }
  std::unique_ptr<RankStream> stream(int rank) const override {
    return std::make_unique<RingScenarioStream>(plan_, rank);
  }
  std::string name() const override {
    return fmt::format("{}({}, {})", plan_.scenario.is_irregular ? "RJ" : "R", ranks(),
                       plan_.scenario.messages);
  }
  int rotation() const override { return plan_.scenario.is_irregular ? 0 : 1; }

 private:
  const RingPlan plan_;
};

}  // namespace

std::unique_ptr<ProgramSource> ring_scenario(const RingScenario& scenario) {
  if (scenario.ranks < 2) throw_usage("a ring scenario needs two ranks");
  if (scenario.messages < 1 || scenario.bytes % scenario.messages != 0) {
    throw_usage(
        fmt::format("{} bytes do not divide into {} messages", scenario.bytes, scenario.messages));
  }
  return std::make_unique<RingScenarioSource>(scenario);
}

Machine ring_of_gpus(int ranks, double bytes_per_s, Picoseconds latency_ps) {
  Machine machine;
  machine.name = fmt::format("ring of {} GPUs", ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    machine.processors.push_back(
        machine.topology.add_node({fmt::format("gpu{}", rank), NodeKind::kGpu, rank}));
  }
  for (int rank = 0; rank < (ranks == 2 ? 1 : ranks); ++rank) {
    machine.topology.connect(rank, (rank + 1) % ranks, bytes_per_s, latency_ps, "link");
  }
  return machine;
}

Machine nodes_with_one_nic(int nodes, int gpus_per_node, const std::vector<int>& order) {
  constexpr double kGpuBytesPerSecond = 300e9, kNicBytesPerSecond = 25e9;
  constexpr Picoseconds kGpuLatencyPs = 1'000'000, kNicLatencyPs = 2'500'000;
  Machine machine;
  machine.name = fmt::format("{} nodes of {} GPUs with one NIC", nodes, gpus_per_node);
  Topology& topology = machine.topology;
  const int network = topology.add_node({"network", NodeKind::kSwitch, nodes});
  std::vector<int> gpus;
  for (int node = 0; node < nodes; ++node) {
    const int inner = topology.add_node({fmt::format("n{}.switch", node), NodeKind::kSwitch, node});
    const int nic = topology.add_node({fmt::format("n{}.nic", node), NodeKind::kNic, node});
    // The NIC hangs on the inner switch without a limit of its own.
    topology.connect(inner, nic, 1e18, 0, "nic");
    topology.connect(nic, network, kNicBytesPerSecond, kNicLatencyPs, "nic");
    for (int gpu = 0; gpu < gpus_per_node; ++gpu) {
      gpus.push_back(
          topology.add_node({fmt::format("n{}.gpu{}", node, gpu), NodeKind::kGpu, node}));
      topology.connect(gpus.back(), inner, kGpuBytesPerSecond, kGpuLatencyPs, "nvlink");
    }
  }
  for (const int gpu : order) machine.processors.push_back(gpus.at(static_cast<size_t>(gpu)));
  return machine;
}

}  // namespace ring
