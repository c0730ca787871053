#include "core/topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <cmath>
#include <limits>
#include <optional>
#include <unordered_map>

#include "core/error.h"

namespace ring {

std::string_view name(NodeKind kind) {
  switch (kind) {
    case NodeKind::kCore:
      return "core";
    case NodeKind::kGpu:
      return "gpu";
    case NodeKind::kSwitch:
      return "switch";
    case NodeKind::kPcieSwitch:
      return "pcie-switch";
    case NodeKind::kNic:
      return "nic";
    case NodeKind::kHost:
      return "host";
  }
  return "unknown";
}

namespace {

struct EdgeLink {
  int link = 0;
};

using Adjacency = boost::adjacency_list<boost::vecS, boost::vecS, boost::bidirectionalS,
                                        boost::no_property, EdgeLink>;

/// The best way from a node to the destination.
struct Label {
  int hops = 0;
  Picoseconds latency_ps = 0;
  double width = std::numeric_limits<double>::infinity();
  int next = -1;
  int link = -1;

  bool is_better_than(const Label& other) const {
    if (hops != other.hops) return hops < other.hops;
    if (latency_ps != other.latency_ps) return latency_ps < other.latency_ps;
    if (width != other.width) return width > other.width;
    if (next != other.next) return next < other.next;
    return link < other.link;
  }
};

using Labels = std::unordered_map<int, Label>;

Label through(const Label& rest, const std::vector<Link>& links, int link) {
  const Link& first = links[static_cast<size_t>(link)];
  return {rest.hops + 1, rest.latency_ps + first.latency_ps,
          std::min(rest.width, first.bytes_per_s), first.to, link};
}

}  // namespace

struct Topology::Graph {
  std::vector<Node> nodes;
  std::vector<Link> links;
  int duplex_groups = 0;
  Adjacency adjacency;

  /// The best way; through processors only where there is none round them.
  std::optional<Labels> find(int from, int to) const;
  /// Labels nodes backwards from `to`, one hop a round, until `from` is among them.
  std::optional<Labels> search(int from, int to, bool through_processors) const;
  /// The label of `from` over neighbours that are already labelled with `hops`.
  std::optional<Label> reach(int from, int hops, const Labels& labels,
                             bool through_processors) const;
  std::vector<int> extend(const std::vector<int>& frontier, Labels& labels) const;
  bool is_processor(int node) const {
    const NodeKind kind = nodes[static_cast<size_t>(node)].kind;
    return kind == NodeKind::kGpu || kind == NodeKind::kCore;
  }
  void require_node(int node) const;
};

std::optional<Label> Topology::Graph::reach(int from, int hops, const Labels& labels,
                                            bool through_processors) const {
  std::optional<Label> best;
  const auto [first, last] = boost::out_edges(static_cast<size_t>(from), adjacency);
  for (auto edge = first; edge != last; ++edge) {
    const int link = adjacency[*edge].link;
    if (links[static_cast<size_t>(link)].bytes_per_s <= 0) continue;
    const auto found = labels.find(links[static_cast<size_t>(link)].to);
    if (found == labels.end() || found->second.hops != hops) continue;
    if (hops > 0 && !through_processors && is_processor(found->first)) continue;
    const Label label = through(found->second, links, link);
    if (!best || label.is_better_than(*best)) best = label;
  }
  return best;
}

std::vector<int> Topology::Graph::extend(const std::vector<int>& frontier, Labels& labels) const {
  std::vector<int> next_frontier;
  for (const int node : frontier) {
    const Label rest = labels.at(node);
    const auto [first, last] = boost::in_edges(static_cast<size_t>(node), adjacency);
    for (auto edge = first; edge != last; ++edge) {
      const int link = adjacency[*edge].link;
      if (links[static_cast<size_t>(link)].bytes_per_s <= 0) continue;
      const Label label = through(rest, links, link);
      const auto [entry, is_new] = labels.try_emplace(links[static_cast<size_t>(link)].from, label);
      if (is_new) {
        next_frontier.push_back(entry->first);
      } else if (label.is_better_than(entry->second)) {
        entry->second = label;
      }
    }
  }
  return next_frontier;
}

std::optional<Labels> Topology::Graph::find(int from, int to) const {
  if (auto labels = search(from, to, false)) return labels;
  return search(from, to, true);
}

std::optional<Labels> Topology::Graph::search(int from, int to, bool through_processors) const {
  Labels labels;
  labels.emplace(to, Label{});
  std::vector<int> frontier{to};
  for (int hops = 0; from != to && !frontier.empty(); ++hops) {
    // Looking from `from` first spares expanding a switch with very many ports.
    if (const auto label = reach(from, hops, labels, through_processors)) {
      labels[from] = *label;
      return labels;
    }
    if (hops > 0 && !through_processors) {
      std::erase_if(frontier, [&](int node) { return is_processor(node); });
    }
    frontier = extend(frontier, labels);
  }
  if (from == to) return labels;
  return std::nullopt;
}

void Topology::Graph::require_node(int node) const {
  if (node < 0 || static_cast<size_t>(node) >= nodes.size()) {
    throw_usage(fmt::format("the topology has no node {}; it has {}", node, nodes.size()));
  }
}

Topology::Topology() : graph_(std::make_unique<Graph>()) {}
Topology::Topology(const Topology& other) : graph_(std::make_unique<Graph>(*other.graph_)) {}
Topology& Topology::operator=(const Topology& other) {
  if (this != &other) graph_ = std::make_unique<Graph>(*other.graph_);
  return *this;
}
Topology::Topology(Topology&& other) noexcept : graph_(std::move(other.graph_)) {}
Topology& Topology::operator=(Topology&& other) noexcept = default;
Topology::~Topology() = default;

int Topology::add_node(Node node) {
  if (!(node.backplane_bytes_per_s >= 0)) {
    throw_usage(fmt::format("node '{}': the backplane must not be negative", node.name));
  }
  boost::add_vertex(graph_->adjacency);
  graph_->nodes.push_back(std::move(node));
  return static_cast<int>(graph_->nodes.size()) - 1;
}

int Topology::add_link(Link link) {
  graph_->require_node(link.from);
  graph_->require_node(link.to);
  const std::string& from = graph_->nodes[static_cast<size_t>(link.from)].name;
  const std::string& to = graph_->nodes[static_cast<size_t>(link.to)].name;
  if (link.from == link.to) throw_usage(fmt::format("node '{}': a link to itself", from));
  if (!(link.bytes_per_s > 0) || !std::isfinite(link.bytes_per_s)) {
    throw_usage(fmt::format("link '{}' -> '{}': the capacity must be positive", from, to));
  }
  if (link.latency_ps < 0) {
    throw_usage(fmt::format("link '{}' -> '{}': the latency must not be negative", from, to));
  }
  graph_->duplex_groups = std::max(graph_->duplex_groups, link.duplex_group + 1);
  const int number = static_cast<int>(graph_->links.size());
  boost::add_edge(static_cast<size_t>(link.from), static_cast<size_t>(link.to), EdgeLink{number},
                  graph_->adjacency);
  graph_->links.push_back(std::move(link));
  return number;
}

void Topology::connect(int a, int b, double bytes_per_s, Picoseconds latency_ps,
                       std::string_view link_class, bool is_half_duplex) {
  const int group = is_half_duplex ? graph_->duplex_groups : -1;
  add_link({a, b, bytes_per_s, latency_ps, group, std::string(link_class), false});
  add_link({b, a, bytes_per_s, latency_ps, group, std::string(link_class), false});
}

const std::vector<Node>& Topology::nodes() const { return graph_->nodes; }
const std::vector<Link>& Topology::links() const { return graph_->links; }
std::vector<Link>& Topology::mutable_links() { return graph_->links; }
std::vector<Node>& Topology::mutable_nodes() { return graph_->nodes; }

Route Topology::route(int from, int to) const {
  graph_->require_node(from);
  graph_->require_node(to);
  const auto labels = graph_->find(from, to);
  if (!labels) {
    throw Error(ErrorKind::kUsage,
                fmt::format("there is no path from '{}' to '{}'",
                            graph_->nodes[static_cast<size_t>(from)].name,
                            graph_->nodes[static_cast<size_t>(to)].name),
                "add a link between them, or place the ranks elsewhere");
  }
  Route route;
  if (from == to) return route;
  route.latency_ps = labels->at(from).latency_ps;
  route.bytes_per_s = labels->at(from).width;
  for (int node = from; node != to;) {
    const Label& label = labels->at(node);
    route.links.push_back(label.link);
    node = label.next;
  }
  return route;
}

bool Topology::has_route(int from, int to) const {
  graph_->require_node(from);
  graph_->require_node(to);
  return graph_->find(from, to).has_value();
}

}  // namespace ring
