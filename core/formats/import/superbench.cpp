#include <fmt/format.h>

#include <set>

#include "core/counted.h"
#include "core/error.h"
#include "core/formats/import/link_log.h"
#include "core/formats/import/text_lines.h"

namespace ring {
namespace {

/// "gpu0_to_gpu1_write_by_sm" -> ends, direction and method.
std::optional<LinkFigure> figure_of(std::string_view key) {
  const size_t by = key.rfind("_by_");
  if (by == std::string_view::npos) return std::nullopt;
  LinkFigure figure;
  figure.how = "by " + std::string(key.substr(by + 4));
  std::string_view ends = key.substr(0, by);
  for (const std::string_view verb : {"_write", "_read"}) {
    if (!ends.ends_with(verb)) continue;
    figure.how = std::string(verb.substr(1)) + " " + figure.how;
    ends.remove_suffix(verb.size());
  }
  size_t at = ends.find("_to_");
  size_t skip = 4;
  if (at == std::string_view::npos) {
    at = ends.find("_and_");
    skip = 5;
    figure.kind = LinkFigureKind::kBothWays;
  }
  if (at == std::string_view::npos) return std::nullopt;
  figure.from = ends.substr(0, at);
  figure.to = ends.substr(at + skip);
  return figure;
}

}  // namespace

LinkLog parse_superbench(std::string_view text, const std::string& file) {
  LinkLog out;
  out.tool = "superbench gpu-copy-bw";
  std::set<std::string> gpus, numa;
  int64_t others = 0;
  bool is_last_cut = false;
  for (const TextLine& line : split_lines(text, file)) {
    const std::vector<std::string_view> words = words_of(line.text);
    if (words.size() != 2) {
      others += words.empty() ? 0 : 1;
      continue;
    }
    auto figure = figure_of(words[0]);
    const auto value = number_of(words[1]);
    if (!figure || !value || *value < 0) {
      ++others;
      continue;
    }
    is_last_cut = line.is_cut;
    figure->value = *value * 1e9;
    figure->line = line.number;
    for (const std::string& end : {figure->from, figure->to}) {
      if (index_after(end, "gpu")) gpus.insert(end);
    }
    if (const size_t at = words[0].find("under_numa"); at != std::string_view::npos) {
      numa.insert(std::string(words[0].substr(at + 10)));
    }
    out.figures.push_back(std::move(*figure));
  }
  if (out.figures.empty()) throw_usage(file + ": no figure of superbench's gpu-copy-bw in it");
  out.devices.assign(gpus.begin(), gpus.end());
  out.findings.push_back(
      {FindingKind::kFound,
       fmt::format("{}, {}, {} figures; names with \"and\" are both ways together",
                   counted(gpus.size(), "GPU"), counted(numa.size(), "NUMA node"),
                   out.figures.size()),
       0});
  out.findings.push_back({FindingKind::kUnknown, "the message sizes and the names of the GPUs", 0});
  if (is_last_cut) {
    out.findings.push_back({FindingKind::kUnknown,
                            "whether the last figure is whole: its line has no end",
                            out.figures.back().line});
  }
  if (others > 0) {
    out.findings.push_back({FindingKind::kIgnored, fmt::format("{} other lines", others), 0});
  }
  return out;
}

}  // namespace ring
