#include "experiments/validation/scatter.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "core/formats/svg_writer.h"

namespace ring {
namespace {

constexpr double kWidth = 760, kHeight = 600, kLeft = 70, kTop = 40, kSide = 480;
// Okabe and Ito.
constexpr std::array<std::string_view, 7> kColors{"#0072B2", "#E69F00", "#009E73", "#CC79A7",
                                                  "#56B4E9", "#D55E00", "#999999"};

/// Seconds of a value of the row.
double seconds_of(const ScoredRow& row, double value) {
  switch (row.meaning.quantity) {
    case Quantity::kSeconds:
    case Quantity::kTokens:
      return value * row.meaning.unit_scale;
    case Quantity::kPerSecond:
      return 1 / value;
    case Quantity::kFlopsPerGpu:
      return row.meaning.counted_flops / static_cast<double>(row.meaning.gpus) /
             (value * row.meaning.unit_scale);
  }
  return value;
}

struct Point {
  double published_s, predicted_s;
};

class Plot {
 public:
  Plot(double low, double high) : low_(std::floor(low)), high_(std::ceil(high)) {}

  double x(double seconds) const { return kLeft + share(seconds) * kSide; }
  double y(double seconds) const { return kTop + kSide - share(seconds) * kSide; }

  void axes(SvgWriter& svg) const {
    svg.rect(kLeft, kTop, kSide, kSide, "none", {"#222222", 1});
    for (double decade = low_; decade <= high_; ++decade) {
      const double seconds = std::pow(10, decade);
      svg.line(x(seconds), kTop, x(seconds), kTop + kSide, {"#dddddd", 1});
      svg.line(kLeft, y(seconds), kLeft + kSide, y(seconds), {"#dddddd", 1});
      const std::string label = format_time(picoseconds_from_seconds(seconds));
      svg.text(x(seconds), kTop + kSide + 18, label, {11, "#222222", SvgAnchor::kMiddle});
      svg.text(kLeft - 6, y(seconds) + 4, label, {11, "#222222", SvgAnchor::kEnd});
    }
    diagonal(svg, 1, {"#222222", 1});
    diagonal(svg, 1.2, {"#999999", 1, "4 3"});
    diagonal(svg, 1 / 1.2, {"#999999", 1, "4 3"});
    svg.text(kLeft + kSide / 2, kTop + kSide + 42, "published time",
             {13, "#222222", SvgAnchor::kMiddle});
    svg.text(kLeft, kTop - 12, "predicted time; dashed: 20 % off", {13});
  }

 private:
  double share(double seconds) const { return (std::log10(seconds) - low_) / (high_ - low_); }

  void diagonal(SvgWriter& svg, double factor, const SvgStroke& stroke) const {
    const double from = std::pow(10, low_) * std::max(1.0, 1 / factor);
    const double to = std::pow(10, high_) / std::max(1.0, factor);
    svg.line(x(from), y(from * factor), x(to), y(to * factor), stroke);
  }

  double low_, high_;
};

}  // namespace

std::string scatter_svg(const std::vector<ScoredRow>& rows) {
  std::map<std::string, std::vector<Point>> files;
  double low = 0, high = 0;
  for (const ScoredRow& row : rows) {
    if (!row.skip.empty() || row.row.role != "judged") continue;
    if (row.meaning.quantity == Quantity::kTokens) continue;
    const Point point{seconds_of(row, *row.row.value), seconds_of(row, row.predicted)};
    for (const double seconds : {point.published_s, point.predicted_s}) {
      low = std::min(low, std::log10(seconds));
      high = std::max(high, std::log10(seconds));
    }
    files[row.row.file].push_back(point);
  }
  SvgWriter svg(kWidth, kHeight);
  const Plot plot(low, std::max(high, low + 1));
  plot.axes(svg);
  size_t number = 0;
  for (const auto& [file, points] : files) {
    const std::string_view color = kColors[number % kColors.size()];
    const double legend_y = kTop + 20 + 22 * static_cast<double>(number);
    for (const Point& point : points) {
      svg.circle(plot.x(point.published_s), plot.y(point.predicted_s), 3, "none", {color, 1.2});
    }
    svg.circle(kLeft + kSide + 20, legend_y - 4, 4, "none", {color, 1.5});
    svg.text(kLeft + kSide + 32, legend_y, fmt::format("{} ({})", file, points.size()), {12});
    ++number;
  }
  return svg.finish();
}

}  // namespace ring
