#include "core/formats/topology_json.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

#include "core/error.h"

namespace ring {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr std::array kNodeKinds{NodeKind::kCore,       NodeKind::kGpu, NodeKind::kSwitch,
                                NodeKind::kPcieSwitch, NodeKind::kNic, NodeKind::kHost};

NodeKind parse_node_kind(std::string_view word, const JsonPlace& place) {
  std::array<std::string_view, kNodeKinds.size()> words;
  for (size_t i = 0; i < words.size(); ++i) words[i] = name(kNodeKinds[i]);
  return kNodeKinds[index_of_word(word, words, place.text())];
}

Node node_from_json(const json& value, const JsonPlace& place) {
  const JsonObject object(value, place, {"name", "kind", "host"});
  Node node;
  node.name = object.string("name");
  node.kind = parse_node_kind(object.string("kind"), object.place("kind"));
  node.host = object.integer32("host", -1);
  return node;
}

int end_of_link(const JsonObject& object, std::string_view key, size_t node_count) {
  const int32_t node = object.integer32(key, 0);
  if (static_cast<size_t>(node) >= node_count) {
    throw_usage(fmt::format("{}: there is no node {}, the topology has {}",
                            object.place(key).text(), node, node_count));
  }
  return node;
}

Link link_from_json(const json& value, const JsonPlace& place, size_t node_count) {
  const JsonObject object(
      value, place,
      {"from", "to", "bytes_per_s", "latency_ps", "duplex_group", "class", "calibrated"});
  Link link;
  link.from = end_of_link(object, "from", node_count);
  link.to = end_of_link(object, "to", node_count);
  link.bytes_per_s = object.amount("bytes_per_s");
  link.latency_ps = object.integer("latency_ps", 0);
  link.duplex_group = object.integer32("duplex_group", -1);
  link.link_class = object.string("class");
  link.is_calibrated = object.boolean("calibrated");
  return link;
}

}  // namespace

ordered_json topology_to_json(const Topology& topology) {
  ordered_json nodes = ordered_json::array();
  for (const Node& node : topology.nodes()) {
    nodes.push_back({{"name", node.name}, {"kind", name(node.kind)}, {"host", node.host}});
  }
  ordered_json links = ordered_json::array();
  for (const Link& link : topology.links()) {
    links.push_back({{"from", link.from},
                     {"to", link.to},
                     {"bytes_per_s", link.bytes_per_s},
                     {"latency_ps", link.latency_ps},
                     {"duplex_group", link.duplex_group},
                     {"class", link.link_class},
                     {"calibrated", link.is_calibrated}});
  }
  return {{"nodes", nodes}, {"links", links}};
}

Topology topology_from_json(const json& value, const JsonPlace& place) {
  const JsonObject object(value, place, {"nodes", "links"});
  Topology topology;
  const json& nodes = object.array("nodes");
  for (size_t i = 0; i < nodes.size(); ++i) {
    topology.add_node(node_from_json(nodes[i], object.place("nodes").at(i)));
  }
  const json& links = object.array("links");
  for (size_t i = 0; i < links.size(); ++i) {
    topology.add_link(link_from_json(links[i], object.place("links").at(i), nodes.size()));
  }
  return topology;
}

}  // namespace ring
