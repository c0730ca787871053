#include "core/alone_times.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "core/error.h"

namespace ring {
namespace {

/// Mean number of flows up to which a transfer counts as alone: a neighbour that begins a little
/// before this one ends is not what made it slow.
constexpr double kAloneOnLink = 1.01;

/// How many flows were on a link at any time, as the integral of that number.
class FlowCount {
 public:
  void add(Picoseconds begin_ps, Picoseconds end_ps) {
    changes_.push_back({begin_ps, 1});
    changes_.push_back({end_ps, -1});
  }

  void finish() {
    std::sort(changes_.begin(), changes_.end());
    double sum = 0;
    int64_t flows = 0;
    Picoseconds at_ps = 0;
    for (const auto& [time_ps, change] : changes_) {
      sum += static_cast<double>(flows) * static_cast<double>(time_ps - at_ps);
      flows += change;
      at_ps = time_ps;
      points_.push_back({time_ps, flows, sum});
    }
    changes_.clear();
  }

  /// Mean number of flows in [begin, end); at least 1 for an interval of the link's own.
  double mean(Picoseconds begin_ps, Picoseconds end_ps) const {
    if (end_ps <= begin_ps) return 1;
    return (integral(end_ps) - integral(begin_ps)) / static_cast<double>(end_ps - begin_ps);
  }

 private:
  struct Point {
    Picoseconds time_ps;
    int64_t flows_after;
    double integral;
  };

  double integral(Picoseconds time_ps) const {
    const auto after =
        std::upper_bound(points_.begin(), points_.end(), time_ps,
                         [](Picoseconds t, const Point& p) { return t < p.time_ps; });
    if (after == points_.begin()) return 0;
    const Point& point = *(after - 1);
    return point.integral +
           static_cast<double>(point.flows_after) * static_cast<double>(time_ps - point.time_ps);
  }

  std::vector<std::pair<Picoseconds, int64_t>> changes_;
  std::vector<Point> points_;
};

/// Routes between processors, found once each.
class Routes {
 public:
  explicit Routes(const Machine& machine) : machine_(machine) {}

  const Route* between(int from_rank, int to_rank) {
    const std::pair ends(processor_of(machine_, from_rank), processor_of(machine_, to_rank));
    auto [at, is_new] = routes_.try_emplace(ends);
    if (is_new && ends.first != ends.second &&
        machine_.topology.has_route(ends.first, ends.second)) {
      at->second = machine_.topology.route(ends.first, ends.second);
    }
    return at->second ? &*at->second : nullptr;
  }

 private:
  const Machine& machine_;
  std::map<std::pair<int, int>, std::optional<Route>> routes_;
};

/// The receive of a pair stands for the transfer; a send without its receive stands for itself.
bool tells_transfer(const RunGraph& graph, int64_t node) {
  const Op& op = graph.op(node);
  if (op.kind == OpKind::kReceive) return true;
  return op.kind == OpKind::kSend && (graph.partner(node) < 0 || !graph.ran(graph.partner(node)));
}

std::pair<int, int> ends_of(const RunGraph& graph, int64_t node) {
  const Op& op = graph.op(node);
  const int rank = graph.id(node).rank;
  return op.kind == OpKind::kSend ? std::pair(rank, op.peer) : std::pair(op.peer, rank);
}

/// The time on the wire: that of an eager transfer is told by its send.
std::pair<Picoseconds, Picoseconds> wire_time(const RunGraph& graph, int64_t node) {
  const int64_t other = graph.partner(node);
  const bool is_eager = other >= 0 && graph.ran(other) && !graph.is_joint(node);
  const Slice& slice =
      graph.slice(is_eager && graph.op(node).kind == OpKind::kReceive ? other : node);
  return {slice.start_ps, slice.end_ps};
}

class AloneTimesBuilder {
 public:
  AloneTimesBuilder(const RunGraph& graph, const Machine& machine)
      : graph_(graph), machine_(machine), routes_(machine) {
    times_.alone_ps.assign(static_cast<size_t>(graph.nodes()), -1);
    times_.tightest_link.assign(static_cast<size_t>(graph.nodes()), -1);
  }

  AloneTimes build() {
    if (machine_.transfer == TransferKind::kLinks) count_flows();
    for (int64_t n = 0; n < graph_.nodes(); ++n) {
      if (!graph_.ran(n)) continue;
      const Op& op = graph_.op(n);
      if (computes_pairs(op.kind)) set_attend(n, op);
      if (tells_transfer(graph_, n)) set_transfer(n, op);
    }
    for (int64_t n = 0; n < graph_.nodes(); ++n) {
      if (!graph_.ran(n) || graph_.op(n).kind != OpKind::kSend || tells_transfer(graph_, n))
        continue;
      const auto at = static_cast<size_t>(n);
      const auto receive = static_cast<size_t>(graph_.partner(n));
      times_.alone_ps[at] = times_.alone_ps[receive];
      times_.tightest_link[at] = times_.tightest_link[receive];
    }
    return std::move(times_);
  }

 private:
  size_t resource_of(int link) const {
    const Link& one = machine_.topology.links()[static_cast<size_t>(link)];
    return one.duplex_group < 0
               ? static_cast<size_t>(link)
               : machine_.topology.links().size() + static_cast<size_t>(one.duplex_group);
  }

  const Route* route_of(int64_t node) {
    const auto [from, to] = ends_of(graph_, node);
    return routes_.between(from, to);
  }

  void count_flows() {
    for (int64_t n = 0; n < graph_.nodes(); ++n) {
      if (!graph_.ran(n) || !tells_transfer(graph_, n)) continue;
      const auto [begin_ps, end_ps] = wire_time(graph_, n);
      if (const Route* route = route_of(n)) {
        for (const int link : route->links) flows_[resource_of(link)].add(begin_ps, end_ps);
      }
    }
    for (auto& [resource, flows] : flows_) flows.finish();
  }

  void set_attend(int64_t node, const Op& op) {
    const bool is_shared = graph_.program().ranks() > std::ssize(machine_.processors);
    const bool can_be_disturbed =
        is_shared || machine_.attend_contention > 1 || machine_.attend_slowdown_by_transfer > 1;
    const Problem& problem = graph_.program().problem;
    const bool is_forward = op.kind == OpKind::kAttend;
    const auto& costs = is_forward ? machine_.attend : machine_.backward;
    const auto cost = costs.find(problem.dtype);
    if (!can_be_disturbed || cost == costs.end()) return;
    times_.alone_ps[static_cast<size_t>(node)] =
        picoseconds_from_seconds(is_forward ? attend_seconds(cost->second, problem, op)
                                            : backward_seconds(cost->second, problem, op));
  }

  void set_transfer(int64_t node, const Op& op) {
    const auto at = static_cast<size_t>(node);
    const auto bytes = static_cast<double>(op.bytes);
    if (machine_.transfer == TransferKind::kReceiverCopy) {
      if (machine_.copy.bytes_per_s <= 0) return;
      times_.alone_ps[at] =
          picoseconds_from_seconds(machine_.copy.start_s + bytes / machine_.copy.bytes_per_s);
      return;
    }
    const Route* route = route_of(node);
    if (route == nullptr || route->links.empty() || route->bytes_per_s <= 0) return;
    const auto [begin_ps, end_ps] = wire_time(graph_, node);
    double least = 0, flows_there = 1;
    for (const int link : route->links) {
      const double flows = flows_[resource_of(link)].mean(begin_ps, end_ps);
      const double share =
          machine_.topology.links()[static_cast<size_t>(link)].bytes_per_s / std::max(1.0, flows);
      int32_t& tightest = times_.tightest_link[at];
      if (tightest >= 0 && share >= least) continue;
      tightest = link;
      least = share;
      flows_there = flows;
    }
    // A link that nobody else used may be slower than stated, but it was not shared.
    if (flows_there <= kAloneOnLink) return;
    times_.alone_ps[at] = route->latency_ps + picoseconds_from_seconds(bytes / route->bytes_per_s);
  }

  const RunGraph& graph_;
  const Machine& machine_;
  Routes routes_;
  std::map<size_t, FlowCount> flows_;
  AloneTimes times_;
};

}  // namespace

Picoseconds wire_time_ps(const RunGraph& graph, int64_t node) {
  const auto [begin_ps, end_ps] = wire_time(graph, node);
  return end_ps - begin_ps;
}

Picoseconds AloneTimes::alone_within(int64_t node, Picoseconds duration_ps) const {
  if (alone_ps.empty()) return duration_ps;
  const Picoseconds alone = alone_ps[static_cast<size_t>(node)];
  return alone < 0 ? duration_ps : std::min(alone, duration_ps);
}

int32_t AloneTimes::link_of(int64_t node) const {
  return tightest_link.empty() ? -1 : tightest_link[static_cast<size_t>(node)];
}

AloneTimes alone_times(const RunGraph& graph, const Machine& machine) {
  return AloneTimesBuilder(graph, machine).build();
}

std::string describe_link(const Topology& topology, int link) {
  const Link& one = topology.links()[static_cast<size_t>(link)];
  const Node& from = topology.nodes()[static_cast<size_t>(one.from)];
  const Node& to = topology.nodes()[static_cast<size_t>(one.to)];
  const std::string ends =
      fmt::format("{} -> {}, {}", from.name, to.name, format_bandwidth(one.bytes_per_s));
  if (from.kind == NodeKind::kNic) return fmt::format("NIC {} ({})", from.name, ends);
  if (to.kind == NodeKind::kNic) return fmt::format("NIC {} ({})", to.name, ends);
  return fmt::format("{} link {}", one.link_class, ends);
}

}  // namespace ring
