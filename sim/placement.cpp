#include "sim/placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "core/error.h"
#include "core/hop_label.h"
#include "sim/max_min.h"

namespace ring {
namespace {

constexpr double kNvlinkBytesPerS = 25e9;
/// A ring beside the first counts from this share of the rate of the first on.
constexpr double kWorthARing = 0.1;
constexpr double kRounding = 1e-9;

/// What flows share: links, duplex groups and backplanes, numbered.
class Resources {
 public:
  explicit Resources(const Topology& topology) : topology_(topology) {}

  /// Of a route, without repetition.
  std::vector<int> of(const Route& route) {
    std::set<int> used;
    for (size_t i = 0; i < route.links.size(); ++i) {
      const int number = route.links[i];
      const Link& link = topology_.links()[static_cast<size_t>(number)];
      used.insert(link.duplex_group < 0 ? resource({0, number}, link.bytes_per_s)
                                        : resource({1, link.duplex_group}, link.bytes_per_s));
      const double backplane =
          topology_.nodes()[static_cast<size_t>(link.to)].backplane_bytes_per_s;
      if (i + 1 < route.links.size() && backplane > 0)
        used.insert(resource({2, link.to}, backplane));
    }
    return {used.begin(), used.end()};
  }

  using Key = std::pair<int, int>;  ///< 0 link, 1 duplex group, 2 node; and its number.
  const std::vector<double>& capacities() const { return capacities_; }
  const Key& key(int resource) const { return keys_[static_cast<size_t>(resource)]; }

 private:
  int resource(const Key& key, double capacity) {
    const auto [at, is_new] = numbers_.emplace(key, static_cast<int>(capacities_.size()));
    if (is_new) {
      capacities_.push_back(capacity);
      keys_.push_back(key);
    }
    return at->second;
  }

  const Topology& topology_;
  std::map<Key, int> numbers_;
  std::vector<double> capacities_;
  std::vector<Key> keys_;
};

void require_different(const Topology& topology, const std::vector<int>& processors) {
  if (processors.empty()) throw_usage("there is no processor to place a rank on");
  if (static_cast<int>(processors.size()) > kMostPlacedRanks) {
    throw_usage(
        fmt::format("{} processors are more than can be put in order", processors.size()),
        fmt::format("up to {} can; place a part of nodes that are alike", kMostPlacedRanks));
  }
  std::set<int> seen;
  for (const int processor : processors) {
    if (seen.insert(processor).second) continue;
    throw_usage(
        fmt::format("'{}' is given twice", topology.nodes()[static_cast<size_t>(processor)].name),
        "a ring passes every processor once");
  }
}

bool is_nic(const Topology& topology, int node) {
  return topology.nodes()[static_cast<size_t>(node)].kind == NodeKind::kNic;
}

/// One search instead of two.
std::optional<Route> route_if_any(const Topology& topology, int from, int to) {
  try {
    return topology.route(from, to);
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// Wider first, then shorter.
bool is_better(const HopLevel& a, const HopLevel& b) {
  const double wide_a =
      a.bytes_per_s == 0 ? std::numeric_limits<double>::infinity() : a.bytes_per_s;
  const double wide_b =
      b.bytes_per_s == 0 ? std::numeric_limits<double>::infinity() : b.bytes_per_s;
  if (wide_a != wide_b) return wide_a > wide_b;
  return std::tie(a.latency_ps, a.links) < std::tie(b.latency_ps, b.links);
}

/// The hops of a ring in this order, alone and at once; `label` and `bytes_per_s` too.
PlacedRing ring_of(const Topology& topology, const std::vector<int>& processors,
                   const std::vector<int>& order, const HopTable& table) {
  PlacedRing ring;
  std::vector<Route> routes;
  int worst = -1;
  for (size_t i = 0; i < order.size(); ++i) {
    ring.processors.push_back(processors[static_cast<size_t>(order[i])]);
    if (order.size() == 1) break;
    const int from = order[i], to = order[(i + 1) % order.size()];
    PlacedHop hop;
    hop.from = processors[static_cast<size_t>(from)];
    hop.to = processors[static_cast<size_t>(to)];
    hop.route = topology.route(hop.from, hop.to);
    hop.label = hop_label(topology, hop.route);
    hop.level = table.at(from, to);
    hop.alone_bytes_per_s = hop.route.bytes_per_s;
    routes.push_back(hop.route);
    if (worst < 0 || hop.level > ring.hops[static_cast<size_t>(worst)].level) {
      worst = static_cast<int>(i);
    }
    ring.hops.push_back(std::move(hop));
  }
  const auto rates = rates_at_once(topology, routes, std::vector<int>(routes.size(), 1));
  for (size_t i = 0; i < rates.size(); ++i) {
    ring.hops[i].at_once_bytes_per_s = rates[i];
    ring.bytes_per_s = i == 0 ? rates[i] : std::min(ring.bytes_per_s, rates[i]);
  }
  if (worst >= 0) ring.label = ring.hops[static_cast<size_t>(worst)].label;
  return ring;
}

/// Takes what the hops of a ring use at `bytes_per_s` each; what is used up carries nothing more.
void take_from(Topology& topology, const PlacedRing& ring, double bytes_per_s) {
  Resources resources(topology);
  std::map<int, int> uses;
  for (const PlacedHop& hop : ring.hops) {
    for (const int resource : resources.of(hop.route)) ++uses[resource];
  }
  for (const auto& [resource, count] : uses) {
    const double before = resources.capacities()[static_cast<size_t>(resource)];
    const double left = before - bytes_per_s * count;
    const double kept = left > kRounding * before ? left : 0;
    const auto [kind, number] = resources.key(resource);
    for (size_t l = 0; l < topology.links().size(); ++l) {
      Link& link = topology.mutable_links()[l];
      const bool is_it = kind == 0   ? static_cast<int>(l) == number
                         : kind == 1 ? link.duplex_group == number
                                     : kept == 0 && link.to == number;
      if (is_it) link.bytes_per_s = kept;
    }
    if (kind == 2 && kept > 0) {
      topology.mutable_nodes()[static_cast<size_t>(number)].backplane_bytes_per_s = kept;
    }
  }
}

bool is_over(const PlacedRing& ring, std::string_view label) {
  return std::all_of(ring.hops.begin(), ring.hops.end(),
                     [&](const PlacedHop& hop) { return hop.label == label; });
}

void add_rings(const Topology& topology, const std::vector<int>& processors,
               const PlacementOptions& options, Placement& placement) {
  Topology left = topology;
  const PlacedRing first = placement.rings.front();
  const double worth = first.bytes_per_s * kWorthARing;
  const bool is_one_kind =
      is_over(first, first.label) && (first.label == "NVLink" || first.label == "xGMI");
  take_from(left, first, first.bytes_per_s);
  while (static_cast<int>(placement.rings.size()) < options.most_rings) {
    std::vector<HopLevel> levels;
    const HopTable table = hop_table(left, processors, levels);
    const RingOrder order = best_ring_order(table);
    if (order.order.empty()) return;
    PlacedRing ring = ring_of(left, processors, order.order, table);
    if (ring.bytes_per_s < worth || (is_one_kind && !is_over(ring, first.label))) return;
    for (PlacedHop& hop : ring.hops) {
      const HopLevel level{topology.route(hop.from, hop.to).bytes_per_s,
                           hop.route.latency_ps,
                           static_cast<int>(hop.route.links.size()),
                           {}};
      hop.level = 0;
      for (size_t l = 0; l < placement.levels.size(); ++l) {
        hop.level = static_cast<int>(l);
        if (!is_better(placement.levels[l], level)) break;
      }
    }
    take_from(left, ring, ring.bytes_per_s);
    placement.rings.push_back(std::move(ring));
  }
}

void count_channels(const PlacementOptions& options, Placement& placement) {
  const double rate = placement.rings.front().bytes_per_s;
  double unit = options.channel_bytes_per_s;
  if (unit <= 0) {
    unit = placement.closes_over_nvlink && rate >= kNvlinkBytesPerS ? kNvlinkBytesPerS : rate;
  }
  placement.channel_bytes_per_s = unit;
  for (PlacedRing& ring : placement.rings) {
    ring.channels = static_cast<int>(std::floor(ring.bytes_per_s / unit + 1e-6));
    placement.channels += ring.channels;
    placement.total_bytes_per_s += ring.bytes_per_s;
  }
}

/// All hops of all rings at once, each ring as many flows as it has channels.
void find_rates_of_all(const Topology& topology, Placement& placement) {
  std::vector<Route> routes;
  std::vector<int> flows;
  for (const PlacedRing& ring : placement.rings) {
    for (const PlacedHop& hop : ring.hops) {
      routes.push_back(hop.route);
      flows.push_back(std::max(1, ring.channels));
    }
  }
  const std::vector<double> rates = rates_at_once(topology, routes, flows);
  size_t next = 0;
  for (PlacedRing& ring : placement.rings) {
    for (PlacedHop& hop : ring.hops) hop.with_all_bytes_per_s = rates[next++];
  }
}

/// The least that a processor can send or receive over links of the classes that the rings
/// use next to processors, or a host over the links that leave it.
void find_bound(const Topology& topology, Placement& placement) {
  std::set<std::string> classes;
  std::set<int> hosts;
  for (const PlacedRing& ring : placement.rings) {
    for (const PlacedHop& hop : ring.hops) {
      for (const int end : {hop.route.links.front(), hop.route.links.back()}) {
        classes.insert(topology.links()[static_cast<size_t>(end)].link_class);
      }
      hosts.insert(topology.nodes()[static_cast<size_t>(hop.from)].host);
    }
  }
  const auto least = [&](const auto& is_inside, const auto& counts) {
    double out = 0, in = 0;
    for (const Link& link : topology.links()) {
      if (is_inside(link.from) == is_inside(link.to) || !counts(link)) continue;
      (is_inside(link.from) ? out : in) += link.bytes_per_s;
    }
    return std::min(out, in);
  };
  double bound = std::numeric_limits<double>::infinity();
  for (const int processor : placement.rings.front().processors) {
    bound =
        std::min(bound, least([&](int node) { return node == processor; },
                              [&](const Link& link) { return classes.contains(link.link_class); }));
  }
  for (const int host : hosts) {
    if (hosts.size() == 1) break;
    const auto is_inside = [&](int node) {
      return topology.nodes()[static_cast<size_t>(node)].host == host;
    };
    bound = std::min(bound, least(is_inside, [](const Link&) { return true; }));
  }
  placement.bound_bytes_per_s = bound;
}

}  // namespace

std::vector<double> rates_at_once(const Topology& topology, const std::vector<Route>& routes,
                                  const std::vector<int>& flows) {
  RING_ASSERT(routes.size() == flows.size());
  Resources resources(topology);
  std::vector<std::vector<int>> used;
  for (const Route& route : routes) used.push_back(resources.of(route));
  MaxMinSystem system;
  for (const double capacity : resources.capacities()) system.add_resource(capacity);
  std::vector<int> groups;
  for (size_t i = 0; i < routes.size(); ++i) {
    groups.push_back(system.add_group(used[i], MaxMinSystem::kNoCap));
    system.set_flows(groups.back(), flows[i]);
  }
  std::vector<int> changed;
  system.solve(changed);
  std::vector<double> rates;
  for (size_t i = 0; i < routes.size(); ++i) {
    rates.push_back(routes[i].links.empty() ? 0 : system.rate(groups[i]) * flows[i]);
  }
  return rates;
}

HopTable hop_table(const Topology& topology, const std::vector<int>& processors,
                   std::vector<HopLevel>& levels) {
  const size_t ranks = processors.size();
  HopTable table{static_cast<int>(ranks), std::vector<int>(ranks * ranks, -1), {}};
  std::vector<HopLevel> worth(ranks * ranks);
  std::vector<bool> has_way(ranks * ranks, false);
  table.shared.resize(ranks * ranks);
  for (size_t from = 0; from < ranks; ++from) {
    for (size_t to = 0; to < ranks; ++to) {
      if (from == to) continue;
      const size_t at = from * ranks + to;
      const auto route = route_if_any(topology, processors[from], processors[to]);
      if (!route) continue;
      has_way[at] = true;
      worth[at] = {route->bytes_per_s, route->latency_ps, static_cast<int>(route->links.size()),
                   hop_label(topology, *route)};
      for (const int number : route->links) {
        const Link& link = topology.links()[static_cast<size_t>(number)];
        if (is_nic(topology, link.from) || is_nic(topology, link.to)) {
          table.shared[at].push_back(number);
        }
      }
    }
  }
  levels.clear();
  for (size_t at = 0; at < worth.size(); ++at) {
    if (has_way[at]) levels.push_back(worth[at]);
  }
  std::stable_sort(levels.begin(), levels.end(), is_better);
  const auto is_same = [](const HopLevel& a, const HopLevel& b) {
    return !is_better(a, b) && !is_better(b, a);
  };
  levels.erase(std::unique(levels.begin(), levels.end(), is_same), levels.end());
  for (size_t at = 0; at < worth.size(); ++at) {
    if (!has_way[at]) continue;
    const auto place = std::lower_bound(levels.begin(), levels.end(), worth[at], is_better);
    table.level[at] = static_cast<int>(place - levels.begin());
  }
  return table;
}

Placement place_ring(const Topology& topology, const std::vector<int>& processors,
                     const PlacementOptions& options) {
  require_different(topology, processors);
  Placement placement;
  const HopTable table = hop_table(topology, processors, placement.levels);
  placement.order = best_ring_order(table);
  if (placement.order.order.empty()) return placement;
  placement.rings.push_back(ring_of(topology, processors, placement.order.order, table));
  if (processors.size() == 1) return placement;
  const PlacedRing& first = placement.rings.front();
  placement.closes_over_nvlink = is_over(first, "NVLink");
  const bool has_limit = first.bytes_per_s > 0 && first.bytes_per_s < MaxMinSystem::kUnlimited;
  if (!has_limit) return placement;
  add_rings(topology, processors, options, placement);
  count_channels(options, placement);
  find_rates_of_all(topology, placement);
  find_bound(topology, placement);
  return placement;
}

}  // namespace ring
