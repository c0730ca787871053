#include "core/hop_label.h"

#include <algorithm>
#include <set>
#include <string_view>

namespace ring {

std::string hop_label(const Topology& topology, const Route& route) {
  if (route.links.empty()) return {};
  std::set<std::string_view> classes;
  int pcie_switches = 0, hosts = 0;
  const Link* narrowest = nullptr;
  for (size_t i = 0; i < route.links.size(); ++i) {
    const Link& link = topology.links()[static_cast<size_t>(route.links[i])];
    classes.insert(link.link_class);
    if (narrowest == nullptr || link.bytes_per_s < narrowest->bytes_per_s) narrowest = &link;
    if (i + 1 == route.links.size()) continue;
    const NodeKind kind = topology.nodes()[static_cast<size_t>(link.to)].kind;
    pcie_switches += kind == NodeKind::kPcieSwitch ? 1 : 0;
    hosts += kind == NodeKind::kHost ? 1 : 0;
  }
  if (classes.size() == 1 && classes.contains("nvlink")) return "NVLink";
  if (classes.size() == 1 && classes.contains("xgmi")) return "xGMI";
  if (classes.contains("nic") || classes.contains("network")) return "NET";
  if (classes.contains("socket")) return "SYS";
  if (classes.contains("node")) return "NODE";
  if (hosts > 0) return "PHB";
  if (pcie_switches > 1) return "PXB";
  if (pcie_switches == 1) return "PIX";
  return narrowest->link_class;
}

std::string nodes_between(const Topology& topology, const Route& route) {
  std::string text;
  for (size_t i = 0; i + 1 < route.links.size(); ++i) {
    const Link& link = topology.links()[static_cast<size_t>(route.links[i])];
    if (!text.empty()) text += ", ";
    text += topology.nodes()[static_cast<size_t>(link.to)].name;
  }
  return text;
}

}  // namespace ring
