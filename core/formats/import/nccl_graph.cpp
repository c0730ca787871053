#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/formats/import/nccl_xml.h"
#include "core/formats/import/safe_xml.h"

namespace ring {
namespace {

std::string algorithm_of(int id) {
  switch (id) {
    case 0:
      return "ring";
    case 1:
      return "tree";
    case 2:
      return "collnet";
    case 3:
      return "nvls";
    default:
      return fmt::format("graph {}", id);
  }
}

/// NCCL's numbers of search patterns.
std::string pattern_name(int pattern) {
  switch (pattern) {
    case 1:
      return "balanced tree";
    case 2:
      return "split tree";
    case 3:
      return "tree";
    case 4:
      return "ring";
    case 5:
      return "nvls";
    case 6:
      return "collnet direct";
    default:
      return fmt::format("pattern {}", pattern);
  }
}

NcclChannel channel_of(pugi::xml_node node) {
  NcclChannel channel;
  for (const pugi::xml_node& child : node.children()) {
    const std::string_view name = child.name();
    if (name == "gpu") channel.gpus.push_back(child.attribute("dev").as_int(-1));
    if (name == "net") channel.nets.emplace_back(child.attribute("dev").value());
  }
  return channel;
}

NcclGraph graph_of(pugi::xml_node node, const std::string& file) {
  NcclGraph graph;
  graph.id = node.attribute("id").as_int(-1);
  graph.pattern = node.attribute("pattern").as_int(0);
  graph.algorithm = algorithm_of(graph.id);
  graph.pattern_name = pattern_name(graph.pattern);
  graph.speed_intra = node.attribute("speedintra").as_double(0);
  graph.speed_inter = node.attribute("speedinter").as_double(0);
  graph.type_intra = node.attribute("typeintra").value();
  graph.type_inter = node.attribute("typeinter").value();
  for (const pugi::xml_node& child : node.children("channel")) {
    graph.channels.push_back(channel_of(child));
  }
  const int stated = node.attribute("nchannels").as_int(static_cast<int>(graph.channels.size()));
  if (stated != static_cast<int>(graph.channels.size())) {
    throw_usage(fmt::format("{}: graph {} states {} channels and has {}", file, graph.id, stated,
                            graph.channels.size()));
  }
  return graph;
}

void describe(const NcclGraph& graph, Findings& findings) {
  findings.push_back(
      {FindingKind::kFound,
       fmt::format("graph {} ({}, {}): {} channels at {} GB/s over {}", graph.id, graph.algorithm,
                   graph.pattern_name, graph.channels.size(), graph.speed_intra, graph.type_intra),
       0});
  if (graph.pattern != 4) return;
  for (const NcclChannel& channel : graph.channels) {
    findings.push_back(
        {FindingKind::kFound, fmt::format("  ring {}", fmt::join(channel.gpus, "-")), 0});
  }
}

}  // namespace

NcclGraphs parse_nccl_graphs(std::string_view text, const std::string& file) {
  pugi::xml_document document;
  parse_xml(text, file, document);
  const pugi::xml_node root = document.child("graphs");
  if (!root) {
    throw_usage(fmt::format("{}: the root element is <{}>, not <graphs>", file,
                            document.document_element().name()),
                "A graph file is what NCCL_GRAPH_DUMP_FILE writes.");
  }
  NcclGraphs out;
  for (const pugi::xml_node& node : root.children("graph")) {
    out.graphs.push_back(graph_of(node, file));
    describe(out.graphs.back(), out.findings);
  }
  if (out.graphs.empty()) throw_usage(file + ": no <graph> in it");
  out.findings.push_back(
      {FindingKind::kUnknown, "the hardware: a graph file says only what was searched on it", 0});
  return out;
}

}  // namespace ring
