#include "core/formats/import/link_curve.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>

#include "core/fit.h"
#include "core/formats/import/text_lines.h"

namespace ring {
namespace {

void finish(LinkCurve& curve) {
  std::stable_sort(curve.points.begin(), curve.points.end(),
                   [](const LinkPoint& a, const LinkPoint& b) { return a.bytes < b.bytes; });
  std::vector<FitRow> rows;
  for (const LinkPoint& point : curve.points) {
    curve.bytes_per_s = std::max(curve.bytes_per_s, point.bytes_per_s);
    if (point.bytes > 0 && point.seconds > 0) {
      rows.push_back({{1, static_cast<double>(point.bytes)}, point.seconds});
    }
  }
  if (rows.size() < 3) return;
  const ByteCostFit fit = byte_cost(fit_relative(rows, 0));
  if (!(fit.cost.bytes_per_s > 0)) return;
  curve.start_s = fit.cost.start_s;
  curve.bytes_per_s = fit.cost.bytes_per_s;
}

/// Steps of a ring that carries the collective, and the share of the size that each sends.
struct RingSteps {
  double steps = 0;  ///< 0: not known.
  double share = 0;
};

RingSteps steps_of(const std::string& collective, double ranks) {
  if (collective == "sendrecv") return {1, 1};
  if (ranks < 2) return {};
  if (collective == "all_gather" || collective == "reduce_scatter") return {ranks - 1, 1 / ranks};
  if (collective == "all_reduce") return {2 * (ranks - 1), 1 / ranks};
  return {};
}

LinkCurve curve_of(const CollectiveRun& run) {
  LinkCurve curve{"rank", "rank", {}, run.hosts() > 1, false, {}, 0, 0};
  const auto ranks = static_cast<double>(run.ranks.size());
  const RingSteps steps = steps_of(run.collective, ranks);
  curve.how = run.collective.empty() ? "a collective that is not named" : run.collective;
  if (!run.ranks.empty()) curve.how += fmt::format(" over {} ranks", run.ranks.size());
  for (const CollectiveRow& row : run.rows) {
    LinkPoint point;
    point.bytes_per_s = row.out_of_place.busbw * 1e9;
    if (steps.steps > 0) {
      point.bytes = static_cast<int64_t>(static_cast<double>(row.size_bytes) * steps.share);
      point.seconds = row.out_of_place.time_us * 1e-6 / steps.steps;
    }
    if (point.bytes_per_s > 0 || point.bytes > 0) curve.points.push_back(point);
  }
  finish(curve);
  return curve;
}

bool is_gpu(const std::string& device) { return device.starts_with("gpu"); }

std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

}  // namespace

LinkCurves link_curves(const NcclTestsLog& log) {
  LinkCurves out;
  for (const CollectiveRun& run : log.runs) {
    LinkCurve curve = curve_of(run);
    if (curve.points.empty()) continue;
    if (curve.start_s == 0 &&
        steps_of(run.collective, static_cast<double>(run.ranks.size())).steps == 0) {
      out.findings.push_back(
          {FindingKind::kUnknown,
           fmt::format("the time of one hop in {}: only its rate is taken", curve.how), run.line});
    }
    out.curves.push_back(std::move(curve));
  }
  return out;
}

LinkCurves link_curves(const LinkLog& log) {
  LinkCurves out;
  std::map<std::tuple<std::string, std::string, std::string, bool>, LinkCurve> curves;
  std::map<std::pair<std::string, std::string>, double> latencies;
  int within = 0;
  for (const LinkFigure& figure : log.figures) {
    if (figure.from == figure.to) {
      ++within;
      continue;
    }
    if (figure.kind == LinkFigureKind::kLatency) {
      auto& least = latencies[{figure.from, figure.to}];
      least = least == 0 ? figure.value : std::min(least, figure.value);
      continue;
    }
    const bool is_both = figure.kind == LinkFigureKind::kBothWays;
    LinkCurve& curve = curves[{figure.from, figure.to, figure.how, is_both}];
    curve.from = figure.from;
    curve.to = figure.to;
    curve.how = figure.how;
    curve.is_both_ways = is_both;
    curve.crosses_hosts = log.tool == "perftest";
    const double rate = is_both ? figure.value / 2 : figure.value;
    const double seconds =
        figure.size_bytes > 0 && rate > 0 ? static_cast<double>(figure.size_bytes) / rate : 0;
    curve.points.push_back({figure.size_bytes, seconds, rate});
  }
  for (auto& [key, curve] : curves) {
    finish(curve);
    const auto latency = latencies.find({curve.from, curve.to});
    if (curve.start_s == 0 && latency != latencies.end()) curve.start_s = latency->second;
    out.curves.push_back(std::move(curve));
  }
  if (within > 0) {
    out.findings.push_back({FindingKind::kIgnored,
                            fmt::format("{} figures within one device: they are no hops", within),
                            0});
  }
  return out;
}

const LinkCurve* best_curve(const LinkCurves& curves) {
  const auto key = [](const LinkCurve& curve) {
    const bool joins_gpus = (is_gpu(curve.from) && is_gpu(curve.to)) || curve.from == "rank";
    return std::tuple(joins_gpus, curve.crosses_hosts, !curve.is_both_ways, curve.points.size(),
                      curve.bytes_per_s);
  };
  const LinkCurve* best = nullptr;
  for (const LinkCurve& curve : curves.curves) {
    const bool joins = key(curve) > std::tuple(false, true, false, size_t{0}, 0.0);
    if (!joins || !(curve.bytes_per_s > 0)) continue;
    if (best == nullptr || key(curve) > key(*best)) best = &curve;
  }
  return best;
}

std::string link_curves_csv(const LinkCurves& curves) {
  std::string text = "from,to,how,both_ways,bytes,seconds,bytes_per_s\n";
  const auto number = [](double value) { return value > 0 ? fmt::format("{}", value) : ""; };
  for (const LinkCurve& curve : curves.curves) {
    for (const LinkPoint& point : curve.points) {
      fmt::format_to(std::back_inserter(text), "{},{},{},{},{},{},{}\n", curve.from, curve.to,
                     quoted(curve.how), curve.is_both_ways ? "yes" : "no",
                     point.bytes > 0 ? fmt::format("{}", point.bytes) : "", number(point.seconds),
                     number(point.bytes_per_s));
    }
  }
  return text;
}

}  // namespace ring
