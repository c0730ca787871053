#include <fmt/format.h>

#include <optional>

#include "core/error.h"
#include "core/formats/import/link_log.h"
#include "core/formats/import/text_lines.h"

namespace ring {
namespace {

/// Bytes per second of one unit of a column such as "BW average[Gb/sec]". MB/sec of perftest are
/// mebibytes, Gb/sec are 10^9 bits.
std::optional<double> bandwidth_unit(std::string_view header) {
  if (contains(header, "[Gb/sec]")) return 1e9 / 8;
  if (contains(header, "[MB/sec]") || contains(header, "[MiB/sec]")) return 1048576.0;
  return std::nullopt;
}

void take_bandwidth(const std::vector<std::string_view>& words, double unit, const TextLine& line,
                    const std::string& how, LinkLog& out) {
  const auto peak = number_of(words[2]), average = number_of(words[3]);
  const auto size = whole_of(words[0]);
  if (!peak || !average || !size) return;
  const LinkFigureKind kind =
      contains(how, "both ways") ? LinkFigureKind::kBothWays : LinkFigureKind::kOneWay;
  if (*average > 0) {
    out.figures.push_back(
        {kind, "local", "remote", *average * unit, *size, how + ", average", line.number});
  }
  if (*peak > 0) {
    out.figures.push_back(
        {kind, "local", "remote", *peak * unit, *size, how + ", peak", line.number});
  } else {
    out.findings.push_back({FindingKind::kUnknown,
                            "the peak: 0.00 stands for not measured, as in runs by duration",
                            line.number});
  }
}

void take_latency(const std::vector<std::string_view>& words, const TextLine& line,
                  const std::string& how, LinkLog& out) {
  const auto size = whole_of(words[0]);
  const auto typical = number_of(words[4]);
  if (!size || !typical) return;
  out.figures.push_back({LinkFigureKind::kLatency, "local", "remote", *typical * 1e-6, *size,
                         how + ", typical", line.number});
}

void describe(LinkLog& out) {
  for (const LinkFigure& figure : out.figures) {
    const std::string value = figure.kind == LinkFigureKind::kLatency
                                  ? fmt::format("{:.2f} us", figure.value * 1e6)
                                  : fmt::format("{:.2f} GB/s", figure.value / 1e9);
    out.findings.push_back(
        {FindingKind::kFound,
         fmt::format("{} at {} bytes ({})", value, figure.size_bytes, figure.how), figure.line});
  }
}

}  // namespace

LinkLog parse_perftest(std::string_view text, const std::string& file) {
  LinkLog out;
  out.tool = "perftest";
  std::string how;
  std::optional<double> unit;
  bool is_latency = false, is_both = false;
  for (const TextLine& line : split_lines(text, file)) {
    const std::vector<std::string_view> words = words_of(line.text);
    if (words.empty()) continue;
    if (contains(line.text, " BW Test") || contains(line.text, " Latency Test")) {
      how = trimmed(line.text);
      is_both = contains(how, "Bidirectional");
      if (is_both) how += ", both ways";
    } else if (words[0] == "#bytes") {
      unit = bandwidth_unit(line.text);
      is_latency = contains(line.text, "t_typical[usec]");
      if (!unit && !is_latency) {
        throw_usage(
            fmt::format("{}:{}: the columns have no unit that is known", file, line.number));
      }
    } else if (const auto device = text_after(line.text, "Device         : ")) {
      out.devices.emplace_back(trimmed(*device));
    } else if (const auto qps = text_after(line.text, "Number of qps   : ")) {
      if (const auto count = leading_whole(trimmed(*qps)); count && *count > 1) {
        how += fmt::format(", {} queue pairs", *count);
      }
    } else if (whole_of(words[0]) && words.size() >= 5 && unit) {
      take_bandwidth(words, *unit, line, how, out);
    } else if (whole_of(words[0]) && words.size() >= 6 && is_latency) {
      take_latency(words, line, how, out);
    }
  }
  if (!unit && !is_latency) throw_usage(file + ": no table of perftest in it");
  if (out.figures.empty()) throw_usage(file + ": the table of perftest has no rows");
  describe(out);
  return out;
}

}  // namespace ring
