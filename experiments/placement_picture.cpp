#include "experiments/placement_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <set>

#include "core/error.h"
#include "core/formats/svg_writer.h"

namespace ring {

namespace {

constexpr size_t kMostDrawn = 128;
constexpr double kNodeRadius = 17;
constexpr std::string_view kWorst = "#D55E00";
constexpr std::string_view kLegend =
    "Numbers are ranks; a hop is as wide as what it gets while all run at once.";

struct HopStyle {
  std::string_view color, dash;
};

/// Okabe-Ito colours; every kind has a dash of its own.
HopStyle style_of(std::string_view label) {
  if (label == "NVLink" || label == "xGMI") return {"#009E73", ""};
  if (label == "PIX" || label == "PXB") return {"#0072B2", "9 3"};
  if (label == "PHB" || label == "NODE") return {"#56B4E9", "6 4"};
  if (label == "SYS") return {"#E69F00", "3 3"};
  if (label == "NET") return {"#CC79A7", "10 3 2 3"};
  return {"#555555", ""};
}

struct Point {
  double x = 0, y = 0;
};

class Picture {
 public:
  Picture(const Topology& topology, const Placement& placement)
      : topology_(topology),
        placement_(placement),
        ring_(placement.rings.front()),
        radius_(std::max(120.0, static_cast<double>(ring_.processors.size()) * 15)),
        side_(2 * radius_ + 220) {}

  std::string draw(const std::string& title) {
    width_ = std::max({side_, 40 + svg_text_width(title, 15), 40 + svg_text_width(kLegend, 12)});
    SvgWriter svg(width_, side_ + 90);
    svg.text(20, 26, title, {15, "#222222", SvgAnchor::kStart, true});
    place_nodes();
    draw_unused(svg);
    for (size_t i = 0; i < ring_.hops.size(); ++i) draw_hop(svg, i);
    draw_nodes(svg);
    draw_legend(svg);
    return svg.finish();
  }

 private:
  void place_nodes() {
    const auto count = static_cast<double>(ring_.processors.size());
    for (size_t i = 0; i < ring_.processors.size(); ++i) {
      const double angle = 2 * std::numbers::pi * static_cast<double>(i) / count;
      at_[ring_.processors[i]] = {width_ / 2 + radius_ * std::sin(angle),
                                  side_ / 2 + 30 - radius_ * std::cos(angle)};
    }
  }

  bool is_neighbour(int a, int b) const {
    return std::any_of(ring_.hops.begin(), ring_.hops.end(), [&](const PlacedHop& hop) {
      return (hop.from == a && hop.to == b) || (hop.from == b && hop.to == a);
    });
  }

  /// Direct links between processors that the ring does not use.
  void draw_unused(SvgWriter& svg) const {
    for (const Link& link : topology_.links()) {
      const auto from = at_.find(link.from), to = at_.find(link.to);
      if (link.from > link.to || from == at_.end() || to == at_.end()) continue;
      if (is_neighbour(link.from, link.to)) continue;
      svg.line(from->second.x, from->second.y, to->second.x, to->second.y, {"#BBBBBB", 1, {}});
    }
  }

  double width_of(const PlacedHop& hop) const {
    double most = 0;
    for (const PlacedHop& other : ring_.hops) most = std::max(most, other.at_once_bytes_per_s);
    return most > 0 ? 1.5 + 5 * std::sqrt(hop.at_once_bytes_per_s / most) : 2;
  }

  bool is_worst(const PlacedHop& hop) const {
    return hop.level == placement_.order.worst_level && placement_.order.worst_level > 0;
  }

  void draw_hop(SvgWriter& svg, size_t number) {
    const PlacedHop& hop = ring_.hops[number];
    const Point a = at_.at(hop.from), b = at_.at(hop.to);
    const HopStyle style = style_of(hop.label);
    kinds_.insert(hop.label);
    const double dx = b.x - a.x, dy = b.y - a.y, length = std::max(1.0, std::hypot(dx, dy));
    // Of two ranks the way there and the way back are drawn beside each other.
    const double shift = ring_.hops.size() == 2 ? 9 : 0;
    const double sx = dy / length * shift, sy = -dx / length * shift;
    const double ux = dx / length, uy = dy / length, gap = kNodeRadius + 3;
    const std::string_view color = is_worst(hop) ? kWorst : style.color;
    const Point tip{b.x + sx - ux * gap, b.y + sy - uy * gap};
    svg.line(a.x + sx + ux * gap, a.y + sy + uy * gap, tip.x - ux * 8, tip.y - uy * 8,
             {color, width_of(hop), style.dash});
    svg.path(
        fmt::format("M{} {} L{} {} L{} {} Z", svg_number(tip.x), svg_number(tip.y),
                    svg_number(tip.x - ux * 11 - uy * 6), svg_number(tip.y - uy * 11 + ux * 6),
                    svg_number(tip.x - ux * 11 + uy * 6), svg_number(tip.y - uy * 11 - ux * 6)),
        color);
    if (ring_.hops.size() > 32) return;
    // Labels stand outside; of many hops inside, away from the names of the processors.
    const double side = ring_.hops.size() == 2   ? (number == 0 ? 1 : -1)
                        : ring_.hops.size() > 10 ? -1
                                                 : 1;
    const Point middle{(a.x + b.x) / 2 + sx, (a.y + b.y) / 2 + sy};
    double ox = middle.x - width_ / 2, oy = middle.y - side_ / 2 - 30;
    const double far = std::hypot(ox, oy);
    ox = far < 20 ? 44 * side : side * ox / far * 44;
    oy = far < 20 ? 0 : side * oy / far * 30;
    svg.text(middle.x + ox, middle.y + oy, hop.label,
             {11, color, SvgAnchor::kMiddle, is_worst(hop)});
    svg.text(middle.x + ox, middle.y + oy + 12,
             hop.at_once_bytes_per_s > 0 ? format_bandwidth(hop.at_once_bytes_per_s) : "",
             {11, "#222222", SvgAnchor::kMiddle, false});
  }

  void draw_nodes(SvgWriter& svg) const {
    constexpr std::string_view kFills[] = {"#E8F1FA", "#FBEFD9", "#E3F4EC",
                                           "#F7E6EF", "#EEEEEE", "#FFF8CC"};
    for (size_t i = 0; i < ring_.processors.size(); ++i) {
      const Node& node = topology_.nodes()[static_cast<size_t>(ring_.processors[i])];
      const Point at = at_.at(ring_.processors[i]);
      svg.circle(at.x, at.y, kNodeRadius,
                 kFills[static_cast<size_t>(std::max(0, node.host)) % std::size(kFills)],
                 {"#222222", 1, {}});
      svg.text(at.x, at.y + 4, fmt::format("{}", i), {12, "#222222", SvgAnchor::kMiddle, true});
      const double dx = at.x - width_ / 2, dy = at.y - side_ / 2 - 30;
      const double far = std::max(1.0, std::hypot(dx, dy));
      const SvgAnchor anchor = std::abs(dx) < 10 ? SvgAnchor::kMiddle
                               : dx > 0          ? SvgAnchor::kStart
                                                 : SvgAnchor::kEnd;
      svg.text(at.x + dx / far * 24, at.y + dy / far * 28 + 4, node.name,
               {11, "#444444", anchor, false});
    }
  }

  void draw_legend(SvgWriter& svg) const {
    double x = 20;
    const double y = side_ + 50;
    for (const std::string& kind : kinds_) {
      const HopStyle style = style_of(kind);
      svg.line(x, y, x + 36, y, {style.color, 3, style.dash});
      svg.text(x + 42, y + 4, kind, {12});
      x += 56 + svg_text_width(kind, 12);
    }
    if (placement_.order.worst_level > 0) {
      svg.line(x, y, x + 36, y, {kWorst, 3, {}});
      svg.text(x + 42, y + 4, "worst hops", {12});
    }
    svg.text(20, y + 26, kLegend, {12});
  }

  const Topology& topology_;
  const Placement& placement_;
  const PlacedRing& ring_;
  const double radius_, side_;
  double width_ = 0;  ///< At least side_: no text is cut off.
  std::map<int, Point> at_;
  std::set<std::string> kinds_;
};

}  // namespace

std::string placement_svg(const Topology& topology, const Placement& placement,
                          const std::string& title) {
  if (placement.rings.empty()) throw_usage("no ring closes, so there is none to draw");
  if (placement.rings.front().processors.size() > kMostDrawn) {
    throw_usage(fmt::format("a ring of {} is too large to be drawn, up to {} are",
                            placement.rings.front().processors.size(), kMostDrawn));
  }
  return Picture(topology, placement).draw(title);
}

}  // namespace ring
