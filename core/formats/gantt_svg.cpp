#include "core/formats/gantt_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <vector>

#include "core/error.h"
#include "core/formats/bar_folding.h"
#include "core/formats/op_colors.h"
#include "core/formats/svg_writer.h"
#include "core/formats/time_axis.h"
#include "core/formats/timeline_rows.h"

namespace ring {
namespace {

constexpr double kMargin = 16;
constexpr double kLabelWidth = 150;  ///< Rank and lane names left of the bars.
constexpr double kBarHeight = 13;
constexpr double kBarGap = 2;
constexpr double kLaneGap = 6;
constexpr double kRankGap = 14;
constexpr double kHeaderHeight = 96;
constexpr double kFooterHeight = 40;
constexpr std::string_view kGridColor = "#DDDDDD";
constexpr std::string_view kFaint = "#666666";

/// The rows of one lane of one rank: a bar line for each timeline.
struct Lane {
  std::string label;
  std::vector<std::pair<const Timeline*, TimelineRow>> lines;
  double y = 0;
};

struct Rank {
  int rank = 0;
  std::vector<Lane> lanes;
};

/// Ranks in order, each with its lanes, each with measured before predicted.
std::vector<Rank> arrange(const Timeline* measured, const Timeline* predicted, int most_ranks,
                          int& left_out) {
  std::map<int, std::map<std::pair<int, int>, Lane>> ranks;
  for (const Timeline* timeline : {measured, predicted}) {
    if (timeline == nullptr) continue;
    for (TimelineRow& row : timeline_rows(*timeline)) {
      Lane& lane = ranks[row.rank][{row.lane, row.overflow}];
      lane.label = row.label;
      lane.lines.emplace_back(timeline, std::move(row));
    }
  }
  left_out = std::max(0, static_cast<int>(ranks.size()) - most_ranks);
  std::vector<Rank> out;
  for (auto& [number, lanes] : ranks) {
    if (static_cast<int>(out.size()) == most_ranks) break;
    out.push_back({number, {}});
    for (auto& [key, lane] : lanes) out.back().lanes.push_back(std::move(lane));
  }
  return out;
}

class GanttPicture {
 public:
  GanttPicture(const Timeline* measured, const Timeline* predicted, const GanttOptions& options)
      : measured_(measured), predicted_(predicted), options_(options) {
    ranks_ = arrange(measured, predicted, options.most_ranks, left_out_);
    for (const Timeline* timeline : {measured, predicted}) {
      if (timeline != nullptr) end_ps_ = std::max(end_ps_, timeline->makespan_ps());
    }
    plot_left_ = kMargin + kLabelWidth;
    plot_width_ = options.width - plot_left_ - kMargin - 24;
    layout();
  }

  std::string draw() {
    SvgWriter svg(options_.width, plot_bottom_ + kFooterHeight + (left_out_ > 0 ? 18 : 0));
    define_hatches(svg);
    draw_header(svg);
    draw_axis(svg);
    draw_ends(svg);
    for (const Rank& rank : ranks_) draw_rank(svg, rank);
    return svg.finish();
  }

 private:
  bool has_both() const { return measured_ != nullptr && predicted_ != nullptr; }

  void layout() {
    double y = kHeaderHeight;
    for (Rank& rank : ranks_) {
      y += kRankGap / 2;
      for (Lane& lane : rank.lanes) {
        lane.y = y;
        y += static_cast<double>(lane.lines.size()) * (kBarHeight + kBarGap) + kLaneGap;
        for (const auto& [timeline, row] : lane.lines) {
          for (const RowBar& bar : row.bars) {
            has_wait_ = has_wait_ || bar.is_wait;
            kinds_.insert(timeline->slices[bar.slice].kind);
          }
        }
      }
      y += kRankGap / 2;
    }
    plot_bottom_ = y;
  }

  double x_of(Picoseconds time_ps) const {
    return plot_left_ + plot_width_ * static_cast<double>(time_ps) / static_cast<double>(end_ps_);
  }

  static std::string hatch_id(std::string_view color) {
    return "hatch-" + std::string(color.substr(1));
  }

  void define_hatches(SvgWriter& svg) const {
    if (predicted_ == nullptr) return;
    std::set<std::string_view> colors{kWaitColor};
    for (const OpKind kind : kinds_) colors.insert(color_of(kind));
    for (const std::string_view color : colors) {
      svg.define(fmt::format(
          R"svg(<pattern id="{}" width="5" height="5" patternUnits="userSpaceOnUse" )svg"
          R"svg(patternTransform="rotate(45)"><rect width="5" height="5" fill="{}"/>)svg"
          R"svg(<rect width="2.2" height="5" fill="{}"/></pattern>)svg",
          hatch_id(color), mixed(color, 0.72), color));
    }
  }

  /// As large as fits; if nothing fits, on two lines, the second cut off where it must be.
  void draw_title(SvgWriter& svg) const {
    constexpr double kLargest = 16, kSmallest = 11, kBold = 1.1;
    const double room = options_.width - 2 * kMargin;
    const auto fits = [&](std::string_view text, double size) {
      return svg_text_width(text, size) * kBold <= room;
    };
    double size = kLargest;
    while (size > kSmallest && !fits(options_.title, size)) --size;
    if (fits(options_.title, size)) {
      svg.text(kMargin, 26, options_.title, {size, "#222222", SvgAnchor::kStart, true});
      return;
    }
    const std::string_view title = options_.title;
    size_t end = title.rfind(", ");
    while (end != std::string_view::npos && end > 0 && !fits(title.substr(0, end + 1), size)) {
      end = title.rfind(", ", end - 1);
    }
    if (end == std::string_view::npos || end == 0) {
      end = title.size() - 1;
      while (end > 0 && !fits(title.substr(0, end + 1), size)) --end;
    }
    std::string rest(title.substr(std::min(title.find_first_not_of(' ', end + 1), title.size())));
    if (!fits(rest, size)) {
      while (!rest.empty() && !fits(rest + "...", size)) rest.pop_back();
      rest += "...";
    }
    svg.text(kMargin, 15, title.substr(0, end + 1), {size, "#222222", SvgAnchor::kStart, true});
    svg.text(kMargin, 30, rest, {size, "#222222", SvgAnchor::kStart, true});
  }

  void draw_header(SvgWriter& svg) const {
    draw_title(svg);
    svg.text(kMargin, 46, summary(), {12, kFaint});
    double x = kMargin;
    const auto entry = [&](std::string_view fill, std::string_view edge, std::string_view label) {
      svg.rect(x, 58, 14, 11, fill, {edge});
      svg.text(x + 20, 68, label, {11});
      x += 20 + svg_text_width(label, 11) + 16;
    };
    for (const OpKind kind : kinds_)
      entry(color_of(kind), mixed(color_of(kind), -0.35), name(kind));
    if (has_wait_) entry(kWaitColor, mixed(kWaitColor, -0.35), "wait");
    x += 12;
    if (measured_ != nullptr) entry("#777777", "#444444", "measured");
    if (predicted_ != nullptr) entry("url(#" + hatch_id(kWaitColor) + ")", "#777777", "predicted");
  }

  std::string summary() const {
    std::string text;
    for (const Timeline* timeline : {measured_, predicted_}) {
      if (timeline == nullptr) continue;
      if (!text.empty()) text += "  ·  ";
      text += timeline->origin == TimelineOrigin::kMeasured ? "measured " : "predicted ";
      text += format_time(timeline->makespan_ps());
      if (!timeline->is_complete) text += " (incomplete)";
    }
    if (has_both() && measured_->makespan_ps() > 0) {
      const double error = static_cast<double>(predicted_->makespan_ps()) /
                               static_cast<double>(measured_->makespan_ps()) -
                           1;
      text += fmt::format("  ·  error {:+.1f} %", 100 * error);
    }
    return text;
  }

  void draw_axis(SvgWriter& svg) const {
    const TimeAxis axis = time_axis(end_ps_, static_cast<int>(plot_width_ / 90));
    for (const TimeTick& tick : axis.ticks) {
      const double x = x_of(tick.at_ps);
      svg.line(x, kHeaderHeight, x, plot_bottom_, {kGridColor});
      svg.text(x, kHeaderHeight - 6, tick.label, {11, kFaint, SvgAnchor::kMiddle});
      svg.text(x, plot_bottom_ + 15, tick.label, {11, kFaint, SvgAnchor::kMiddle});
    }
    const std::string title = "time in " + axis.unit;
    svg.text(plot_left_ - 14, kHeaderHeight - 6, title, {11, kFaint, SvgAnchor::kEnd});
    svg.text(plot_left_ + plot_width_ / 2, plot_bottom_ + 32, title,
             {11, kFaint, SvgAnchor::kMiddle});
    if (left_out_ > 0) {
      svg.text(kMargin, plot_bottom_ + 50, fmt::format("{} further ranks are not shown", left_out_),
               {11, kFaint});
    }
  }

  void draw_rank(SvgWriter& svg, const Rank& rank) const {
    const double top = rank.lanes.front().y - kRankGap / 2;
    svg.line(kMargin, top, plot_left_ + plot_width_, top, {"#AAAAAA"});
    svg.text(kMargin, rank.lanes.front().y + 11, fmt::format("rank {}", rank.rank),
             {12, "#222222", SvgAnchor::kStart, true});
    for (const Lane& lane : rank.lanes) {
      const auto lines = static_cast<double>(lane.lines.size());
      const double middle = lane.y + (lines * (kBarHeight + kBarGap) - kBarGap) / 2;
      svg.text(plot_left_ - 8, middle + 4, lane.label, {11, "#222222", SvgAnchor::kEnd});
      double y = lane.y;
      for (const auto& [timeline, row] : lane.lines) {
        draw_line(svg, *timeline, row, y);
        y += kBarHeight + kBarGap;
      }
    }
  }

  /// The bars of one row: one path per look, then the labels.
  void draw_line(SvgWriter& svg, const Timeline& timeline, const TimelineRow& row, double y) const {
    const bool is_predicted = timeline.origin == TimelineOrigin::kPredicted;
    const std::vector<FoldedBar> bars = fold_bars(timeline, row, plot_left_, plot_width_, end_ps_);
    std::map<std::pair<std::string_view, bool>, std::string> paths;  // By colour and edge.
    for (const FoldedBar& bar : bars) {
      const std::string_view color = bar.is_wait ? kWaitColor : color_of(bar.kind);
      const double inset = bar.is_wait ? 4 : 0;
      const bool has_edge = bar.width >= 3;
      const double half = has_edge ? 0.5 : 0;  // The edge lies inside the bar.
      paths[{color, has_edge}] += fmt::format(
          "M{} {}h{}v{}h-{}z", svg_number(bar.x + half), svg_number(y + inset + half),
          svg_number(bar.width - 2 * half), svg_number(kBarHeight - 2 * inset - 2 * half),
          svg_number(bar.width - 2 * half));
    }
    for (const auto& [look, data] : paths) {
      const auto& [color, has_edge] = look;
      const std::string fill = is_predicted ? "url(#" + hatch_id(color) + ")" : std::string(color);
      const std::string edge = mixed(color, -0.35);
      svg.path(data, fill, has_edge ? SvgStroke{edge} : SvgStroke{});
    }
    if (!is_predicted) label_bars(svg, timeline, bars, y);
  }

  /// Which shard is attended to, and who the peer is, where there is room.
  static void label_bars(SvgWriter& svg, const Timeline& timeline,
                         const std::vector<FoldedBar>& bars, double y) {
    for (const FoldedBar& bar : bars) {
      if (bar.is_wait || bar.is_folded) continue;
      const Slice& slice = timeline.slices[bar.slice];
      std::string label;
      if (computes_pairs(slice.kind) && slice.kv_shard >= 0) {
        label = fmt::format("KV {}", slice.kv_shard);
      } else if (slice.kind == OpKind::kSend) {
        label = fmt::format("to {}", slice.peer);
      } else if (slice.kind == OpKind::kReceive) {
        label = fmt::format("from {}", slice.peer);
      }
      if (label.empty() || svg_text_width(label, 9) + 6 > bar.width) continue;
      const bool is_dark = computes_pairs(slice.kind) || slice.kind == OpKind::kReceive;
      svg.text(bar.x + bar.width / 2, y + 9.8, label,
               {9, is_dark ? "#ffffff" : "#222222", SvgAnchor::kMiddle});
    }
  }

  /// Where each timeline ends.
  void draw_ends(SvgWriter& svg) const {
    if (measured_ != nullptr) {
      const double x = x_of(measured_->makespan_ps());
      svg.line(x, kHeaderHeight, x, plot_bottom_, {"#222222", 1.2});
    }
    if (predicted_ != nullptr) {
      const double x = x_of(predicted_->makespan_ps());
      svg.line(x, kHeaderHeight, x, plot_bottom_, {"#222222", 1.2, "5 4"});
    }
  }

  const Timeline* measured_;
  const Timeline* predicted_;
  const GanttOptions& options_;
  std::vector<Rank> ranks_;
  std::set<OpKind> kinds_;
  bool has_wait_ = false;
  int left_out_ = 0;
  Picoseconds end_ps_ = 1;
  double plot_left_ = 0, plot_width_ = 0, plot_bottom_ = 0;
};

}  // namespace

std::string gantt_svg(const Timeline* measured, const Timeline* predicted,
                      const GanttOptions& options) {
  RING_ASSERT(measured != nullptr || predicted != nullptr);
  return GanttPicture(measured, predicted, options).draw();
}

}  // namespace ring
