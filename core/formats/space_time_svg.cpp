#include "core/formats/space_time_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "core/error.h"
#include "core/formats/op_colors.h"
#include "core/formats/svg_writer.h"
#include "core/formats/time_axis.h"

namespace ring {
namespace {

constexpr double kMargin = 16;
constexpr double kLabelWidth = 52;
constexpr double kHeaderHeight = 64;
constexpr double kRankHeight = 54;
constexpr double kBarHeight = 20;
constexpr double kFooterHeight = 36;
constexpr std::string_view kFaint = "#666666";

/// How messages of a payload are drawn.
struct Carried {
  Payload payload;
  std::string_view words, color, dash;
};
constexpr std::array kCarried = {
    Carried{Payload::kKeyValue, "K and V", "#009E73", ""},
    Carried{Payload::kQuery, "Q", "#E69F00", "6 3"},
    Carried{Payload::kPartial, "partial O and lse", "#D55E00", "2 2"},
    Carried{Payload::kState, "states", "#D55E00", "2 2 6 2"},
    Carried{Payload::kOutput, "O", "#CC79A7", "8 2 2 2"},
    Carried{Payload::kOutputGradient, "dO", "#CC79A7", "1 3"},
    Carried{Payload::kQuerySide, "Q, dO, lse and delta", "#E69F00", "6 3 2 3"},
    Carried{Payload::kKeyGradients, "dK and dV", "#0072B2", "4 2"},
    Carried{Payload::kQueryGradients, "dQ", "#56B4E9", "4 2"},
};

class SpaceTimePicture {
 public:
  SpaceTimePicture(const RingProgram& program, const Timeline& timeline,
                   const SpaceTimeOptions& options)
      : program_(program), timeline_(timeline), options_(options) {
    for (const Slice& slice : timeline.slices) {
      const bool is_known =
          slice.op.rank >= 0 && slice.op.rank < program.ranks() && slice.op.index >= 0 &&
          slice.op.index <
              static_cast<int64_t>(
                  program.rank_programs[static_cast<size_t>(slice.op.rank)].ops.size());
      if (!is_known) throw_usage("the timeline has an op that the program does not have");
    }
    end_ps_ = timeline.makespan_ps();
    if (end_ps_ <= 0) throw_usage("a timeline without time cannot be drawn");
    left_ = kMargin + kLabelWidth;
    width_ = options.width - left_ - kMargin;
    bottom_ = kHeaderHeight + kRankHeight * program.ranks();
  }

  std::string draw() {
    SvgWriter svg(options_.width, bottom_ + kFooterHeight);
    svg.text(kMargin, 24, options_.title.empty() ? program_.name : options_.title,
             {15, "#222222", SvgAnchor::kStart, true});
    draw_legend(svg);
    draw_axis(svg);
    for (int rank = 0; rank < program_.ranks(); ++rank) {
      svg.text(kMargin, line_of(rank) + 4, fmt::format("rank {}", rank), {12, kFaint});
      svg.line(left_, line_of(rank), left_ + width_, line_of(rank), {"#EEEEEE", 1});
    }
    for (const Slice& slice : timeline_.slices) draw_bar(svg, slice);
    for (const Slice& slice : timeline_.slices) draw_arrow(svg, slice);
    return svg.finish();
  }

 private:
  double x_of(Picoseconds time_ps) const {
    return left_ + width_ * static_cast<double>(time_ps) / static_cast<double>(end_ps_);
  }
  double line_of(int rank) const { return kHeaderHeight + kRankHeight * (rank + 0.5); }

  static const Carried& carried(Payload payload) {
    for (const Carried& entry : kCarried) {
      if (entry.payload == payload) return entry;
    }
    return kCarried.front();
  }

  void draw_legend(SvgWriter& svg) const {
    std::map<Payload, bool> travels;
    for (const Slice& slice : timeline_.slices) {
      if (slice.kind == OpKind::kSend) travels[program_.op(slice.op).payload] = true;
    }
    double x = kMargin;
    const auto entry = [&](std::string_view words, auto draw_sample) {
      draw_sample(x);
      svg.text(x + 26, 48, words, {12, kFaint});
      x += 26 + svg_text_width(words, 12) + 16;
    };
    std::set<OpKind> kinds;
    for (const Slice& slice : timeline_.slices) kinds.insert(slice.kind);
    for (const OpKind kind : kinds) {
      if (kind == OpKind::kSend || kind == OpKind::kReceive) continue;
      entry(name(kind), [&](double at) { svg.rect(at, 38, 20, 12, color_of(kind)); });
    }
    for (const Carried& message : kCarried) {
      if (!travels[message.payload]) continue;
      entry(message.words, [&](double at) {
        svg.line(at, 44, at + 20, 44, {message.color, 2, message.dash});
      });
    }
  }

  void draw_axis(SvgWriter& svg) const {
    const TimeAxis axis = time_axis(end_ps_, 8);
    for (const TimeTick& tick : axis.ticks) {
      const double x = x_of(tick.at_ps);
      svg.line(x, kHeaderHeight, x, bottom_, {"#DDDDDD", 1});
      svg.text(x, bottom_ + 16, tick.label, {11, kFaint, SvgAnchor::kMiddle});
    }
    svg.text(left_ + width_, bottom_ + 30, "time in " + axis.unit, {11, kFaint, SvgAnchor::kEnd});
  }

  void draw_bar(SvgWriter& svg, const Slice& slice) const {
    if (slice.kind == OpKind::kSend || slice.kind == OpKind::kReceive) return;
    const double x = x_of(slice.start_ps);
    const double width = std::max(x_of(slice.end_ps) - x, 0.5);
    const double y = line_of(slice.op.rank) - kBarHeight / 2;
    const std::string edge = mixed(color_of(slice.kind), -0.3);
    svg.rect(x, y, width, kBarHeight, color_of(slice.kind), {width > 3 ? edge : "none", 1});
    const Op& op = program_.op(slice.op);
    if (slice.kind != OpKind::kAttend || op.kv_shard < 0) return;
    // Which queries against which keys, where it is not the rank's own queries.
    const bool is_own = op.q_shard == slice.op.rank || op.q_shard >= program_.partition.ranks();
    const std::string words =
        is_own ? fmt::format("{}", shard_name(op.kv_shard)) : fmt::format("q{}", op.q_shard);
    if (svg_text_width(words, 11) + 4 > width) return;
    svg.text(x + width / 2, y + kBarHeight - 6, words, {11, "#FFFFFF", SvgAnchor::kMiddle});
  }

  std::string shard_name(int shard) const {
    const int ranks = program_.partition.ranks();
    return shard < ranks ? std::to_string(shard) : fmt::format("g{}", shard - ranks);
  }

  void draw_arrow(SvgWriter& svg, const Slice& slice) const {
    if (slice.kind != OpKind::kSend) return;
    const Carried& look = carried(program_.op(slice.op).payload);
    const bool is_down = slice.peer > slice.op.rank;
    const double x1 = x_of(slice.start_ps), x2 = std::max(x_of(slice.end_ps), x1 + 1);
    const double y1 = line_of(slice.op.rank) + (is_down ? kBarHeight : -kBarHeight) / 2;
    const double y2 = line_of(slice.peer) + (is_down ? -kBarHeight : kBarHeight) / 2;
    svg.line(x1, y1, x2, y2, {look.color, 1.5, look.dash});
    const double length = std::hypot(x2 - x1, y2 - y1);
    const double ux = (x2 - x1) / length, uy = (y2 - y1) / length;
    svg.path(fmt::format("M{} {}L{} {}L{} {}Z", svg_number(x2), svg_number(y2),
                         svg_number(x2 - 7 * ux + 3 * uy), svg_number(y2 - 7 * uy - 3 * ux),
                         svg_number(x2 - 7 * ux - 3 * uy), svg_number(y2 - 7 * uy + 3 * ux)),
             look.color);
  }

  const RingProgram& program_;
  const Timeline& timeline_;
  const SpaceTimeOptions options_;
  Picoseconds end_ps_ = 0;
  double left_ = 0, width_ = 0, bottom_ = 0;
};

}  // namespace

std::string space_time_svg(const RingProgram& program, const Timeline& timeline,
                           const SpaceTimeOptions& options) {
  return SpaceTimePicture(program, timeline, options).draw();
}

}  // namespace ring
