#include <fmt/format.h>

#include <cmath>

#include "core/error.h"
#include "core/formats/import/link_log.h"
#include "core/formats/import/text_lines.h"

namespace ring {
namespace {

/// "507.98 MB/s" -> bytes per second (decimal units, as such logs use).
std::optional<double> rate_of(std::string_view number, std::string_view unit) {
  const auto value = number_of(number);
  if (!value) return std::nullopt;
  for (const auto& [name, factor] : {std::pair<std::string_view, double>{"GB/s", 1e9},
                                     {"MB/s", 1e6},
                                     {"KB/s", 1e3},
                                     {"B/s", 1.0}}) {
    if (unit.substr(0, unit.find(',')) == name) return *value * factor;
  }
  return std::nullopt;
}

struct PairLine {
  int64_t size = 0;
  double both = 0, each = 0, seconds = 0;
};

std::optional<PairLine> pair_line(std::string_view text) {
  const std::vector<std::string_view> words = words_of(text);
  if (words.size() < 10 || words[0] != "SIZE" || words[2] != "REAL_BD" || words[5] != "BD/PAIR") {
    return std::nullopt;
  }
  const auto size = whole_of(words[1]);
  const auto both = rate_of(words[3], words[4]), each = rate_of(words[6], words[7]);
  const auto seconds = number_of(words[9]);
  if (!size || !both || !each || !seconds || words[8] != "time" || *seconds <= 0) {
    return std::nullopt;
  }
  return PairLine{*size, *both, *each, *seconds};
}

}  // namespace

LinkLog parse_pair_bandwidth(std::string_view text, const std::string& file) {
  LinkLog out;
  out.tool = "pair exchange";
  double repeats = 0;
  for (const TextLine& line : split_lines(text, file)) {
    const auto pair = pair_line(line.text);
    if (!pair) continue;
    const double count = pair->each * pair->seconds / static_cast<double>(pair->size);
    if (repeats == 0) repeats = std::round(count);
    if (std::abs(pair->both - 2 * pair->each) > 0.01 * pair->both ||
        std::abs(count - repeats) > 0.02 * repeats) {
      throw_usage(
          fmt::format("{}:{}: size, bandwidths and time contradict each other", file, line.number));
    }
    out.figures.push_back({LinkFigureKind::kOneWay, "gpu0", "gpu1", pair->each, pair->size,
                           "each way while both go", line.number});
    out.figures.push_back({LinkFigureKind::kBothWays, "gpu0", "gpu1", pair->both, pair->size,
                           "both ways", line.number});
    out.figures.push_back({LinkFigureKind::kLatency, "gpu0", "gpu1", pair->seconds / repeats,
                           pair->size, "time of one exchange", line.number});
  }
  if (out.figures.empty()) throw_usage(file + ": no line of a pair exchange in it");
  const LinkFigure& largest = out.figures[out.figures.size() - 3];
  out.findings.push_back(
      {FindingKind::kFound,
       fmt::format("{} sizes; {:.1f} GB/s each way at {} bytes", out.figures.size() / 3,
                   largest.value / 1e9, largest.size_bytes),
       0});
  out.findings.push_back(
      {FindingKind::kFound,
       fmt::format("each time is that of {:.0f} repeats; REAL_BD is the sum of both ways", repeats),
       0});
  out.findings.push_back({FindingKind::kUnknown, "which link the pair is joined by", 0});
  return out;
}

}  // namespace ring
