#include "kernels/bench/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace ring::bench {

std::string as_table(const std::vector<Figure>& figures) {
  std::string text = fmt::format("{:<52} {:>10} {:<9} {:>9} {:<4} {:>7} {:>9} {:>8}\n", "name",
                                 "value", "unit", "target", "ok", "spread", "fastest", "rounds");
  for (const Figure& f : figures) {
    const std::string target =
        f.target ? fmt::format("{}{:.4g}", f.at_least ? ">=" : "<=", *f.target) : "-";
    const std::string rounds =
        f.quiet ? fmt::format("{}/{}", f.samples, f.rounds) : fmt::format("{} noisy", f.samples);
    text += fmt::format("{:<52} {:>10.4g} {:<9} {:>9} {:<4} {:>6.1f}% {:>9.4g} {:>8}\n", f.name,
                        f.value, f.unit, target, f.target ? (f.ok() ? "yes" : "NO") : "-",
                        100.0 * f.spread, f.fastest, rounds);
  }
  return text;
}

std::string as_json(const Context& context, const std::vector<Figure>& figures) {
  nlohmann::ordered_json document;
  document["schema"] = "ringscope-bench-1";
  document["bench"] = "kernels";
  document["context"] = {{"cpu", context.cpu}, {"isa", context.isa}, {"peers", context.peers}};
  document["figures"] = nlohmann::ordered_json::array();
  for (const Figure& f : figures) {
    nlohmann::ordered_json row;
    row["name"] = f.name;
    row["value"] = f.value;
    row["unit"] = f.unit;
    row["target"] = f.target ? nlohmann::ordered_json(*f.target) : nlohmann::ordered_json(nullptr);
    row["direction"] = f.at_least ? "at_least" : "at_most";
    row["ok"] = f.ok();
    row["spread"] = f.spread;
    row["fastest"] = f.fastest;
    row["samples"] = f.samples;
    row["rounds"] = f.rounds;
    row["quiet"] = f.quiet;
    document["figures"].push_back(row);
  }
  return document.dump(2) + "\n";
}

namespace {

// Log-log axes of the picture: flops per byte by GFLOP/s, both in whole decades.
struct Axes {
  double x_low, x_high, y_low, y_high;
  static constexpr double kLeft = 70, kTop = 20, kWidth = 560, kHeight = 360;

  double x(double value) const {
    return kLeft + kWidth * std::log10(value / x_low) / std::log10(x_high / x_low);
  }
  double y(double value) const {
    return kTop + kHeight * (1.0 - std::log10(value / y_low) / std::log10(y_high / y_low));
  }
};

std::string line(double x1, double y1, double x2, double y2, const char* style) {
  return fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" {}/>\n", x1, y1,
                     x2, y2, style);
}

std::string label(double x, double y, const std::string& text, const char* anchor = "start") {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor,
                     text);
}

std::string grid(const Axes& axes) {
  std::string svg;
  const char* thin = "stroke=\"#dddddd\"";
  for (double x = axes.x_low; x <= axes.x_high * 1.01; x *= 10) {
    svg += line(axes.x(x), axes.kTop, axes.x(x), axes.kTop + axes.kHeight, thin);
    svg += label(axes.x(x), axes.kTop + axes.kHeight + 16, fmt::format("{:g}", x), "middle");
  }
  for (double y = axes.y_low; y <= axes.y_high * 1.01; y *= 10) {
    svg += line(axes.kLeft, axes.y(y), axes.kLeft + axes.kWidth, axes.y(y), thin);
    svg += label(axes.kLeft - 6, axes.y(y) + 4, fmt::format("{:g}", y), "end");
  }
  svg += label(axes.kLeft + axes.kWidth / 2, axes.kTop + axes.kHeight + 36,
               "flops per byte of Q, K, V and output", "middle");
  svg += label(axes.kLeft, axes.kTop - 6, "GFLOP/s");
  return svg;
}

std::string ceilings(const Axes& axes, const Roofline& roofline) {
  std::string svg;
  const double top = roofline.compute.value;
  double ridge = axes.x_high;
  for (const Ceiling& slope : roofline.bandwidths) {
    const double end = top / slope.value;
    const double start = std::max(axes.x_low, axes.y_low / slope.value);
    ridge = std::min(ridge, end);
    svg += line(axes.x(start), axes.y(start * slope.value), axes.x(end), axes.y(top),
                "stroke=\"#999999\"");
    svg += label(axes.x(start) + 4, axes.y(start * slope.value) - 8,
                 fmt::format("{} {:.0f} GB/s", slope.name, slope.value));
  }
  svg += line(axes.x(std::max(ridge, axes.x_low)), axes.y(top), axes.kLeft + axes.kWidth,
              axes.y(top), "stroke=\"#D55E00\" stroke-width=\"2\"");
  svg += label(axes.kLeft + axes.kWidth, axes.y(top) - 6,
               fmt::format("{} {:.0f} GFLOP/s", roofline.compute.name, top), "end");
  return svg;
}

}  // namespace

std::string as_svg(const Roofline& roofline) {
  Axes axes{0.1, 10.0, 1.0, 10.0};
  while (axes.y_high < roofline.compute.value) axes.y_high *= 10;
  for (const RooflinePoint& point : roofline.points) {
    while (axes.x_high < point.flops_per_byte) axes.x_high *= 10;
  }
  std::string svg =
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"1000\" height=\"430\" "
      "font-family=\"sans-serif\" font-size=\"11\">\n"
      "<rect width=\"1000\" height=\"430\" fill=\"#ffffff\"/>\n";
  svg += grid(axes) + ceilings(axes, roofline);
  double key_y = axes.kTop + 20;
  int number = 1;
  for (const RooflinePoint& point : roofline.points) {
    svg += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" fill=\"#0072B2\"/>\n",
                       axes.x(point.flops_per_byte), axes.y(point.gflops));
    svg += label(axes.x(point.flops_per_byte) - 3, axes.y(point.gflops) + 16 + 11 * (number % 3),
                 std::to_string(number));
    svg += label(axes.kLeft + axes.kWidth + 16, key_y,
                 fmt::format("{} {}: {:.1f} GFLOP/s", number, point.name, point.gflops));
    key_y += 15;
    ++number;
  }
  return svg + "</svg>\n";
}

}  // namespace ring::bench
