#include "gui/ring_view/ring_layout.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <map>
#include <numbers>
#include <set>

namespace ring::gui {

namespace {

constexpr double kRingRadius = 0.42;
constexpr double kSharedRadius = 0.24;  ///< Of processors with several ranks each.
/// On one host NICs stand beside the line from a processor to the switch, in parts of their pitch.
constexpr double kBesideLine = 0.3;

QPointF on_circle(double turn, double radius) {
  const double angle = (turn - 0.25) * 2 * std::numbers::pi;
  return {0.5 + radius * std::cos(angle), 0.5 + radius * std::sin(angle)};
}

class Placer {
 public:
  Placer(const Machine& machine, int ranks) : machine_(machine), ranks_(ranks) {}

  RingLayout place() {
    const auto& nodes = machine_.topology.nodes();
    layout_.nodes.resize(nodes.size());
    layout_.shares_processors = static_cast<size_t>(ranks_) > machine_.processors.size();
    for (size_t i = 0; i < nodes.size(); ++i) {
      layout_.nodes[i] = {static_cast<int>(i), QPointF(0.5, 0.5)};
    }
    place_processors();
    place_inner();
    place_ranks();
    place_links();
    return std::move(layout_);
  }

 private:
  int host_of(int node) const { return machine_.topology.nodes()[static_cast<size_t>(node)].host; }

  /// In the order of the ring, with a gap where the host changes.
  void place_processors() {
    const auto& processors = machine_.processors;
    const size_t count = processors.size();
    if (count == 0) return;
    size_t gaps = 0;
    for (size_t i = 0; i < count; ++i) {
      gaps += host_of(processors[i]) != host_of(processors[(i + 1) % count]) ? 1U : 0U;
    }
    const double places = static_cast<double>(count) + 0.6 * static_cast<double>(gaps);
    double slot = 0.5;
    for (size_t i = 0; i < count; ++i) {
      turn_[processors[i]] = slot / places;
      layout_.nodes[static_cast<size_t>(processors[i])].at =
          on_circle(slot / places, layout_.shares_processors ? kSharedRadius : kRingRadius);
      slot += host_of(processors[i]) != host_of(processors[(i + 1) % count]) ? 1.6 : 1;
    }
    const double seats = layout_.shares_processors ? ranks_ : places;
    layout_.rank_radius = std::clamp(0.9 * std::numbers::pi * kRingRadius / seats, 0.006, 0.036);
  }

  /// Mean direction of the processors of each host.
  std::map<int, double> host_turns() const {
    std::map<int, std::complex<double>> sums;
    for (const auto& [node, turn] : turn_) {
      sums[host_of(node)] += std::polar(1.0, turn * 2 * std::numbers::pi);
    }
    std::map<int, double> turns;
    for (const auto& [host, sum] : sums) {
      turns[host] = std::abs(sum) < 1e-6 ? 0 : std::arg(sum) / (2 * std::numbers::pi);
    }
    return turns;
  }

  void place_inner() {
    const std::map<int, double> turns = host_turns();
    const bool is_one_host = turns.size() == 1;
    std::map<std::pair<int, NodeKind>, std::vector<int>> groups;
    const auto& nodes = machine_.topology.nodes();
    for (size_t i = 0; i < nodes.size(); ++i) {
      if (turn_.count(static_cast<int>(i)) != 0) continue;
      const int host = turns.count(nodes[i].host) != 0 ? nodes[i].host : -1;
      groups[{host, nodes[i].kind}].push_back(static_cast<int>(i));
    }
    for (const auto& [key, members] : groups) {
      const auto& [host, kind] = key;
      const double radius = host < 0 ? 0.07 : radius_of(kind, is_one_host);
      // On one host they stand in the order of its processors.
      const double middle = host < 0 ? 0 : is_one_host ? 0.5 : turns.at(host);
      // Around the whole circle on one host; else within the sector of the host.
      const double span = host < 0 || is_one_host ? 1 : 0.7 / static_cast<double>(turns.size());
      const bool is_beside =
          is_one_host && (kind == NodeKind::kNic || kind == NodeKind::kPcieSwitch);
      const double beside = is_beside ? kBesideLine / static_cast<double>(members.size()) : 0;
      for (size_t i = 0; i < members.size(); ++i) {
        const double place = (static_cast<double>(i) + 0.5) / static_cast<double>(members.size());
        const bool is_alone = members.size() == 1 && (host < 0 || is_one_host);
        layout_.nodes[static_cast<size_t>(members[i])].at =
            is_alone && radius < 0.1 ? QPointF(0.5, 0.5)
                                     : on_circle(middle + (place - 0.5) * span + beside, radius);
      }
    }
  }

  static double radius_of(NodeKind kind, bool is_one_host) {
    switch (kind) {
      case NodeKind::kSwitch:
        return is_one_host ? 0.06 : 0.28;
      case NodeKind::kPcieSwitch:
        return is_one_host ? 0.28 : 0.32;
      case NodeKind::kNic:
        return is_one_host ? 0.2 : 0.17;
      case NodeKind::kHost:
        return is_one_host ? 0.13 : 0.23;
      case NodeKind::kGpu:
      case NodeKind::kCore:
        return 0.35;
    }
    return 0.3;
  }

  void place_ranks() {
    for (int rank = 0; rank < ranks_; ++rank) {
      const auto node = static_cast<size_t>(processor_of(machine_, rank));
      layout_.ranks.push_back(layout_.shares_processors
                                  ? on_circle((rank + 0.5) / ranks_, kRingRadius)
                                  : layout_.nodes[node].at);
    }
  }

  void place_links() {
    std::set<std::pair<int, int>> drawn;
    const auto& links = machine_.topology.links();
    for (size_t i = 0; i < links.size(); ++i) {
      const auto ends = std::minmax(links[i].from, links[i].to);
      if (drawn.insert({ends.first, ends.second}).second) {
        layout_.links.push_back({ends.first, ends.second, static_cast<int>(i)});
      }
    }
  }

  const Machine& machine_;
  int ranks_;
  RingLayout layout_;
  std::map<int, double> turn_;  ///< Of each processor, in turns from the top.
};

}  // namespace

RingLayout lay_out_ring(const Machine& machine, int ranks) {
  return Placer(machine, ranks).place();
}

}  // namespace ring::gui
