#include <fmt/format.h>

#include <cmath>

#include "core/counted.h"
#include "core/error.h"
#include "core/formats/import/link_log.h"
#include "core/formats/import/text_lines.h"

namespace ring {
namespace {

class NvbandwidthReader {
 public:
  explicit NvbandwidthReader(const std::string& file) : file_(file) { out_.tool = "nvbandwidth"; }

  void take(const TextLine& line) {
    const std::string_view text = trimmed(line.text);
    const std::vector<std::string_view> words = words_of(text);
    if (words.empty()) return;
    if (text.starts_with("nvbandwidth Version")) {
      is_tool_ = true;
    } else if (words[0] == "Device" && contains(text, ":")) {
      std::string_view name = trimmed(*text_after(text, ":"));
      out_.devices.emplace_back(trimmed(name.substr(0, name.find('('))));
    } else if (words[0] == "Running" && words.size() > 1) {
      start_test(std::string(words[1].substr(0, words[1].find_last_not_of('.') + 1)));
    } else if (text.starts_with("Waived")) {
      ++waived_;
    } else if (words[0] == "SUM" && words.size() == 3) {
      check_sum(line.number, words);
    } else if (contains(text, "(GB/s)")) {
      has_matrix_ = true;
      columns_ = 0;
    } else if (has_matrix_) {
      take_matrix_line(line, words);
    }
  }

  LinkLog finish() {
    if (!is_tool_) throw_usage(file_ + ": no output of nvbandwidth in it");
    describe();
    return std::move(out_);
  }

 private:
  void start_test(const std::string& name) {
    test_ = name;
    has_matrix_ = false;
    sum_ = 0;
  }

  void take_matrix_line(const TextLine& line, const std::vector<std::string_view>& words) {
    if (columns_ == 0) {
      for (const std::string_view word : words) {
        if (!whole_of(word)) return;
      }
      columns_ = words.size();
      return;
    }
    const auto row = whole_of(words[0]);
    if (!row) return;
    if (words.size() - 1 != columns_) {
      if (line.is_cut) return;
      throw_usage(fmt::format("{}:{}: a row with {} values under {} columns", file_, line.number,
                              words.size() - 1, columns_));
    }
    for (size_t i = 1; i < words.size(); ++i) take_cell(line.number, *row, i - 1, words[i]);
  }

  void take_cell(int64_t line, int64_t row, size_t column, std::string_view word) {
    if (word == "N/A") return;
    const auto value = number_of(word);
    if (!value || *value < 0) {
      throw_usage(fmt::format("{}:{}: \"{}\" is no figure", file_, line, word));
    }
    sum_ += *value;
    const bool is_latency = contains(test_, "latency");
    const bool is_both = contains(test_, "bidirectional");
    const bool is_device = test_.starts_with("device_to_device");
    const std::string cpu = "cpu", gpu = fmt::format("gpu{}", column);
    LinkFigure figure;
    figure.kind = is_latency ? LinkFigureKind::kLatency
                             : (is_both ? LinkFigureKind::kBothWays : LinkFigureKind::kOneWay);
    figure.from = is_device ? fmt::format("gpu{}", row) : cpu;
    figure.to = gpu;
    if (test_.starts_with("device_to_host") || test_.starts_with("all_to_host")) {
      std::swap(figure.from, figure.to);
    }
    figure.value = *value * (is_latency ? 1e-9 : 1e9);
    figure.how = test_;
    figure.line = line;
    out_.figures.push_back(std::move(figure));
  }

  /// Every matrix ends with the sum of its cells.
  void check_sum(int64_t line, const std::vector<std::string_view>& words) {
    const auto stated = number_of(words[2]);
    if (!stated || !has_matrix_) return;
    if (std::abs(*stated - sum_) > 0.02 + 1e-3 * *stated) {
      throw_usage(fmt::format("{}:{}: the cells of {} add to {:.2f}, the file says {:.2f}", file_,
                              line, test_, sum_, *stated));
    }
    out_.findings.push_back({FindingKind::kFound,
                             fmt::format("{}: the cells add to {:.2f} as stated", test_, *stated),
                             line});
  }

  void describe() {
    out_.findings.insert(out_.findings.begin(),
                         {FindingKind::kFound,
                          fmt::format("{}: {}", counted(out_.devices.size(), "device"),
                                      out_.devices.empty() ? "?" : out_.devices[0]),
                          0});
    bool has_pairs = false;
    for (const LinkFigure& figure : out_.figures) {
      has_pairs = has_pairs || (figure.from.starts_with("gpu") && figure.to.starts_with("gpu"));
      if (!out_.devices.empty() && figure.to.starts_with("gpu")) {
        const auto index = index_after(figure.to, "gpu");
        if (index && *index >= static_cast<int>(out_.devices.size())) has_more_columns_ = true;
      }
    }
    if (has_more_columns_) {
      out_.findings.push_back(
          {FindingKind::kIgnored, "matrices with more columns than devices are listed", 0});
    }
    if (!has_pairs) {
      out_.findings.push_back(
          {FindingKind::kUnknown,
           fmt::format("the bandwidth between GPUs: no test of it ran ({} waived)", waived_), 0});
    }
  }

  const std::string& file_;
  LinkLog out_;
  std::string test_;
  bool is_tool_ = false, has_matrix_ = false, has_more_columns_ = false;
  size_t columns_ = 0;
  int waived_ = 0;
  double sum_ = 0;
};

}  // namespace

LinkLog parse_nvbandwidth(std::string_view text, const std::string& file) {
  NvbandwidthReader reader(file);
  for (const TextLine& line : split_lines(text, file)) reader.take(line);
  return reader.finish();
}

}  // namespace ring
