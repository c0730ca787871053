#include "core/ring_closure.h"

#include <fmt/format.h>

#include "core/alone_times.h"

namespace ring {
namespace {

/// Links that share one capacity count as one.
size_t resource_of(const Topology& topology, int link) {
  const Link& one = topology.links()[static_cast<size_t>(link)];
  return one.duplex_group < 0 ? static_cast<size_t>(link)
                              : topology.links().size() + static_cast<size_t>(one.duplex_group);
}

std::vector<int> count_flows(const Topology& topology, const std::vector<RingHop>& hops) {
  std::vector<int> flows(2 * topology.links().size(), 0);
  for (const RingHop& hop : hops) {
    for (const int link : hop.route.links) ++flows[resource_of(topology, link)];
  }
  return flows;
}

void find_share(const Topology& topology, const std::vector<int>& flows, RingHop& hop) {
  for (const int link : hop.route.links) {
    const int here = flows[resource_of(topology, link)];
    const double share = topology.links()[static_cast<size_t>(link)].bytes_per_s / here;
    if (hop.narrowest_link >= 0 && share >= hop.share_bytes_per_s) continue;
    hop.narrowest_link = link;
    hop.flows = here;
    hop.share_bytes_per_s = share;
    hop.link_class = topology.links()[static_cast<size_t>(link)].link_class;
  }
}

bool is_worse(const RingHop& a, const RingHop& b) {
  if (a.is_connected != b.is_connected) return !a.is_connected;
  if ((a.narrowest_link < 0) != (b.narrowest_link < 0)) return b.narrowest_link < 0;
  if (a.share_bytes_per_s != b.share_bytes_per_s) return a.share_bytes_per_s < b.share_bytes_per_s;
  return a.route.latency_ps > b.route.latency_ps;
}

}  // namespace

RingClosure check_ring(const Topology& topology, const std::vector<int>& processors) {
  RingClosure closure;
  const auto ranks = processors.size();
  for (size_t r = 0; r < ranks && ranks > 1; ++r) {
    RingHop hop;
    hop.from_rank = static_cast<int>(r);
    hop.to_rank = static_cast<int>((r + 1) % ranks);
    const int from = processors[r], to = processors[(r + 1) % ranks];
    hop.is_connected = topology.has_route(from, to);
    if (hop.is_connected) hop.route = topology.route(from, to);
    closure.closes = closure.closes && hop.is_connected;
    closure.hops.push_back(std::move(hop));
  }
  const std::vector<int> flows = count_flows(topology, closure.hops);
  for (size_t h = 0; h < closure.hops.size(); ++h) {
    RingHop& hop = closure.hops[h];
    find_share(topology, flows, hop);
    const int worst = closure.worst_hop;
    if (worst < 0 || is_worse(hop, closure.hops[static_cast<size_t>(worst)])) {
      closure.worst_hop = static_cast<int>(h);
    }
  }
  if (!closure.hops.empty() && closure.closes) {
    closure.common_class = closure.hops.front().link_class;
    for (const RingHop& hop : closure.hops) {
      if (hop.link_class != closure.common_class) closure.common_class.clear();
    }
  }
  return closure;
}

std::string describe(const RingClosure& closure, const Topology& topology) {
  if (closure.hops.empty()) return "a ring of one rank has no hops";
  const RingHop& worst = closure.hops[static_cast<size_t>(closure.worst_hop)];
  if (!closure.closes) {
    return fmt::format("does not close: there is no path from rank {} to rank {}", worst.from_rank,
                       worst.to_rank);
  }
  std::string text = closure.common_class.empty() ? "closes over links of several classes"
                                                  : "closes over " + closure.common_class;
  if (worst.narrowest_link < 0) return text + "; all ranks share one processor";
  text += fmt::format("; worst hop {} -> {}: {} on {}", worst.from_rank, worst.to_rank,
                      format_bandwidth(worst.share_bytes_per_s),
                      describe_link(topology, worst.narrowest_link));
  if (worst.flows > 1) text += fmt::format(", shared by {} hops", worst.flows);
  return text;
}

}  // namespace ring
