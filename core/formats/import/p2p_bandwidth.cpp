#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "core/counted.h"
#include "core/error.h"
#include "core/formats/import/link_log.h"
#include "core/formats/import/text_lines.h"

namespace ring {
namespace {

/// What the matrix that follows holds.
struct Title {
  LinkFigureKind kind;
  std::string how;
  double unit;  ///< To bytes per second or seconds.
};

std::optional<Title> title_of(std::string_view line) {
  if (!contains(line, "Matrix")) return std::nullopt;
  const std::string how = contains(line, "P2P=Enabled") ? "P2P=Enabled" : "P2P=Disabled";
  if (contains(line, "Latency") && contains(line, "(us)"))
    return Title{LinkFigureKind::kLatency, how, 1e-6};
  if (!contains(line, "(GB/s)")) return std::nullopt;
  if (line.starts_with("Unidirectional")) return Title{LinkFigureKind::kOneWay, how, 1e9};
  if (line.starts_with("Bidirectional")) return Title{LinkFigureKind::kBothWays, how, 1e9};
  return std::nullopt;
}

class P2pReader {
 public:
  explicit P2pReader(const std::string& file) : file_(file) {
    out_.tool = "p2pBandwidthLatencyTest";
  }

  void take(const TextLine& line) {
    const std::string_view text = trimmed(line.text);
    const std::vector<std::string_view> words = words_of(text);
    if (words.empty()) return;
    if (words[0] == "Device:" && words.size() > 2) {
      const size_t name = text.find(',');
      const size_t end = text.find(',', name + 1);
      if (name != std::string_view::npos && end != std::string_view::npos) {
        out_.devices.emplace_back(trimmed(text.substr(name + 1, end - name - 1)));
      }
    } else if (words[0].starts_with("Device=")) {
      out_.knows_peer_access = true;
      if (contains(text, " CAN Access")) out_.has_peer_access = true;
    } else if (auto title = title_of(text)) {
      title_ = title;
      has_title_ = true;
      columns_.clear();
    } else if (title_ && (words[0] == "D\\D" || words[0] == "GPU" || words[0] == "CPU")) {
      where_ = words[0] == "CPU" ? "CPU " : "";
      columns_.clear();
      for (size_t i = 1; i < words.size(); ++i) {
        columns_.push_back(static_cast<int>(whole_of(words[i]).value_or(-1)));
      }
    } else if (title_ && !columns_.empty()) {
      take_row(line, words);
    }
  }

  LinkLog finish() {
    if (!has_title_) {
      throw_usage(file_ + ": no bandwidth or latency matrix of p2pBandwidthLatencyTest in it");
    }
    if (out_.figures.empty()) {
      throw_usage(file_ + ": the matrices of p2pBandwidthLatencyTest in it have no rows");
    }
    describe();
    return std::move(out_);
  }

 private:
  void take_row(const TextLine& line, const std::vector<std::string_view>& words) {
    const auto row = whole_of(words[0]);
    if (!row || words.size() - 1 > columns_.size()) {
      title_.reset();  // Prose after the matrix.
      return;
    }
    if (words.size() - 1 < columns_.size()) {
      if (line.is_cut) return;
      throw_usage(fmt::format("{}:{}: a row with {} values under {} columns", file_, line.number,
                              words.size() - 1, columns_.size()));
    }
    for (size_t i = 0; i < columns_.size(); ++i) {
      const auto value = number_of(words[i + 1]);
      if (!value || *value < 0) {
        throw_usage(fmt::format("{}:{}: \"{}\" is no figure", file_, line.number, words[i + 1]));
      }
      out_.figures.push_back({title_->kind, fmt::format("gpu{}", *row),
                              fmt::format("gpu{}", columns_[i]), *value * title_->unit, 0,
                              where_ + title_->how, line.number});
    }
  }

  void describe() {
    const auto add = [&](FindingKind kind, std::string text) {
      out_.findings.push_back({kind, std::move(text), 0});
    };
    add(FindingKind::kFound, fmt::format("{}: {}", counted(out_.devices.size(), "device"),
                                         out_.devices.empty() ? "?" : out_.devices[0]));
    if (out_.knows_peer_access && !out_.has_peer_access) {
      add(FindingKind::kFound,
          "no pair has peer access: the tables for P2P=Enabled were measured through host memory");
    }
    for (const LinkFigureKind kind :
         {LinkFigureKind::kOneWay, LinkFigureKind::kBothWays, LinkFigureKind::kLatency}) {
      double low = 0, high = 0;
      for (const LinkFigure& figure : out_.figures) {
        if (figure.kind != kind || figure.from == figure.to || figure.how.starts_with("CPU"))
          continue;
        low = low == 0 ? figure.value : std::min(low, figure.value);
        high = std::max(high, figure.value);
      }
      if (high == 0) continue;
      if (kind == LinkFigureKind::kLatency) {
        add(FindingKind::kFound, fmt::format("latency {:.1f} to {:.1f} us", low * 1e6, high * 1e6));
      } else {
        add(FindingKind::kFound,
            fmt::format("{} {:.2f} to {:.2f} GB/s",
                        kind == LinkFigureKind::kOneWay ? "one way" : "both ways together",
                        low / 1e9, high / 1e9));
      }
    }
    add(FindingKind::kIgnored, "the diagonals: they are copies within a device");
  }

  const std::string& file_;
  LinkLog out_;
  std::optional<Title> title_;
  bool has_title_ = false;
  std::string where_;
  std::vector<int> columns_;
};

}  // namespace

LinkLog parse_p2p_bandwidth(std::string_view text, const std::string& file) {
  P2pReader reader(file);
  for (const TextLine& line : split_lines(text, file)) reader.take(line);
  return reader.finish();
}

}  // namespace ring
