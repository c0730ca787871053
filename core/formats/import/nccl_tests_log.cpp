#include "core/formats/import/nccl_tests_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/counted.h"
#include "core/error.h"
#include "core/formats/import/text_lines.h"

namespace ring {
namespace {

/// Launchers put their own mark before the lines: "[1,0]<stdout>:", "0: ".
std::string_view without_tag(std::string_view line) {
  if (const auto rest = text_after(line, "<stdout>:"); rest && line.starts_with("[")) {
    return trimmed(*rest);
  }
  return trimmed(line);
}

std::optional<CollectiveRank> rank_of(std::string_view line) {
  const std::vector<std::string_view> words = words_of(line);
  CollectiveRank rank;
  bool has_rank = false, has_host = false;
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    const auto number = whole_of(words[i + 1]);
    if (words[i] == "Rank" && number && i < 3) {
      rank.rank = static_cast<int>(*number);
      has_rank = true;
    } else if (words[i] == "on" && !has_host) {
      rank.host = words[i + 1];
      has_host = true;
    } else if (words[i] == "device" && number) {
      rank.device = static_cast<int>(*number);
      for (size_t at = i + 3; at < words.size(); ++at) {
        rank.gpu += (rank.gpu.empty() ? "" : " ") + std::string(words[at]);
      }
    }
  }
  if (!has_rank || !has_host) return std::nullopt;
  return rank;
}

/// What the header of a table says about its rows.
struct Columns {
  int times = 0;  ///< 2 with in-place columns, 1 without, 0 before any header.
};

std::optional<CollectiveTime> time_of(const std::vector<std::string_view>& words, size_t at) {
  const auto time = number_of(words[at]), algbw = number_of(words[at + 1]),
             busbw = number_of(words[at + 2]);
  if (!time || !algbw || !busbw) return std::nullopt;
  CollectiveTime out{*time, *algbw, *busbw, {}};
  const auto wrong = number_of(words[at + 3]);
  if (wrong) out.wrong = static_cast<int64_t>(std::llround(*wrong));
  if (!wrong && words[at + 3] != "N/A") return std::nullopt;
  return out;
}

/// A row, or nothing for a line that does not begin with a size.
std::optional<CollectiveRow> row_of(std::string_view line, const Columns& columns,
                                    const std::string& where, bool is_cut) {
  const std::vector<std::string_view> words = words_of(line);
  if (words.size() < 3 || !whole_of(words[0]) || !whole_of(words[1])) return std::nullopt;
  const size_t numbers = static_cast<size_t>(columns.times) * 4;
  const bool is_short = words.size() < numbers + 3;
  if (is_short && is_cut) return std::nullopt;
  if (is_short) throw_usage(where + ": a row with too few columns");
  CollectiveRow row;
  row.size_bytes = *whole_of(words[0]);
  row.count = *whole_of(words[1]);
  row.type = words[2];
  if (words.size() > numbers + 3) row.redop = words[3];
  const auto first = time_of(words, words.size() - numbers);
  if (!first) throw_usage(where + ": a row whose columns are not numbers");
  row.out_of_place = *first;
  if (columns.times == 2) {
    row.in_place = time_of(words, words.size() - 4);
    if (!row.in_place) throw_usage(where + ": a row whose columns are not numbers");
  }
  return row;
}

/// The name of a test program: "all_reduce_perf" -> "all_reduce".
std::string name_in(std::string_view line) {
  static constexpr std::string_view kTests[] = {
      "all_reduce", "all_gather", "reduce_scatter", "alltoall", "broadcast",
      "reduce",     "sendrecv",   "gather",         "scatter",  "hypercube"};
  for (const std::string_view test : kTests) {
    if (contains(line, std::string(test) + "_perf")) return std::string(test);
  }
  return {};
}

int64_t bytes_of_type(std::string_view type) {
  if (type == "float" || type == "int32" || type == "uint32") return 4;
  if (type == "double" || type == "int64" || type == "uint64") return 8;
  if (type == "half" || type == "bfloat16") return 2;
  return 1;
}

/// The collective, from the ratio of bus to algorithm bandwidth and from the count of a row.
std::string inferred(const CollectiveRun& run, bool header_has_redop) {
  const CollectiveRow* peak = run.peak(false);
  const auto ranks = static_cast<double>(run.ranks.size());
  if (peak == nullptr || ranks < 2 || peak->out_of_place.algbw <= 0) return {};
  const double factor = peak->out_of_place.busbw / peak->out_of_place.algbw;
  const auto is_near = [&](double value) { return std::abs(factor - value) < 0.02 * value; };
  const bool is_split = peak->count * bytes_of_type(peak->type) < peak->size_bytes;
  if (is_near(2 * (ranks - 1) / ranks) && !is_split) return "all_reduce";
  if (is_near((ranks - 1) / ranks) && is_split) {
    if (peak->redop == "sum") return "reduce_scatter";
    return header_has_redop ? "alltoall" : "all_gather";
  }
  return {};
}

class LogReader {
 public:
  explicit LogReader(const std::string& file) : file_(file) {}

  void take(const TextLine& raw) {
    const std::string_view line = without_tag(raw.text);
    if (contains(line, "NCCL INFO") || contains(line, "NCCL WARN")) {
      ++info_lines_;
      return;
    }
    if (line.starts_with("#")) {
      take_comment(raw.number, line);
      return;
    }
    if (const std::string name = name_in(line); !name.empty() && !contains(line, "concluded")) {
      pending_name_ = name;  // The command as it was typed.
    }
    if (columns_.times == 0) return;
    const auto row = row_of(line, columns_, fmt::format("{}:{}", file_, raw.number), raw.is_cut);
    if (row) {
      run(raw.number).rows.push_back(*row);
      run(raw.number).rows.back().line = raw.number;
    } else if (raw.is_cut && !line.empty() && whole_of(words_of(line)[0])) {
      add(FindingKind::kIgnored, raw.number, "the last row is cut");
    }
  }

  NcclTestsLog finish() {
    std::erase_if(out_.runs, [](const CollectiveRun& r) { return r.rows.empty(); });
    if (out_.runs.empty()) {
      throw_usage(file_ + ": no results of nccl-tests in it",
                  columns_.times > 0 ? "There is a header, but no row follows it." : "");
    }
    for (CollectiveRun& r : out_.runs) conclude(r);
    if (info_lines_ > 0) {
      add(FindingKind::kIgnored, 0, fmt::format("{} lines of NCCL's own log", info_lines_));
    }
    return std::move(out_);
  }

 private:
  void add(FindingKind kind, int64_t line, std::string text) {
    out_.findings.push_back({kind, std::move(text), line});
  }

  CollectiveRun& run(int64_t line) {
    if (out_.runs.empty() || is_new_) {
      out_.runs.emplace_back();
      out_.runs.back().line = line;
      out_.runs.back().collective = pending_name_;
      header_has_redop_.push_back(false);
      pending_name_.clear();
      is_new_ = false;
    }
    return out_.runs.back();
  }

  void take_comment(int64_t number, std::string_view line) {
    if (contains(line, "nThread")) {
      is_new_ = true;
      run(number);
    } else if (contains(line, "Collective test starting")) {
      pending_name_ = name_in(line);
    } else if (contains(line, "Avg bus bandwidth")) {
      if (const auto rest = text_after(line, ":"))
        run(number).stated_average = number_of(trimmed(*rest));
    } else if (contains(line, "size") && contains(line, "count") && contains(line, "busbw")) {
      if (!out_.runs.empty() && !run(number).rows.empty()) is_new_ = true;
      run(number);
      columns_.times = 0;
      for (const std::string_view word : words_of(line)) columns_.times += word == "time" ? 1 : 0;
      columns_.times = std::clamp(columns_.times, 1, 2);
      header_has_redop_.back() = contains(line, "redop");
    } else if (const auto rank = rank_of(line)) {
      run(number).ranks.push_back(*rank);
    }
  }

  void conclude(CollectiveRun& r) {
    const auto at = static_cast<size_t>(&r - out_.runs.data());
    if (r.collective.empty()) {
      r.collective = inferred(r, at < header_has_redop_.size() && header_has_redop_[at]);
      r.is_inferred = !r.collective.empty();
    }
    const std::string name = r.collective.empty() ? "a collective" : r.collective;
    const CollectiveRow* peak = r.peak(false);
    add(FindingKind::kFound, r.line,
        fmt::format("{} on {} of {}, {}, at most {} GB/s bus bandwidth at {} bytes", name,
                    counted(r.ranks.size(), "rank"), counted(r.hosts(), "host"),
                    counted(r.rows.size(), "size"), peak->out_of_place.busbw, peak->size_bytes));
    if (r.is_inferred) {
      add(FindingKind::kAssumed, r.line, "the collective is told by its numbers: " + r.collective);
    }
    if (r.collective.empty()) add(FindingKind::kUnknown, r.line, "which collective it is");
    if (!r.is_checked()) add(FindingKind::kUnknown, r.line, "whether the results were right");
    if (r.wrong() > 0) {
      add(FindingKind::kFound, r.line,
          fmt::format("WRONG RESULTS: {} elements; the times are not to be trusted", r.wrong()));
    }
    check_average(r);
  }

  /// The footer averages all rows; another value says that rows were taken out.
  void check_average(const CollectiveRun& r) {
    if (!r.stated_average) {
      add(FindingKind::kUnknown, r.line, "whether the run came to its end: no footer");
      return;
    }
    double sum = 0;
    double count = 0;
    for (const CollectiveRow& row : r.rows) {
      sum += row.out_of_place.busbw + (row.in_place ? row.in_place->busbw : 0);
      count += row.in_place ? 2 : 1;
    }
    if (std::abs(sum / count - *r.stated_average) > 0.01 * *r.stated_average + 0.01) {
      add(FindingKind::kIgnored, r.line,
          fmt::format("the stated average of {} GB/s: the rows here average {:.2f}, so some are "
                      "missing",
                      *r.stated_average, sum / count));
    }
  }

  const std::string& file_;
  NcclTestsLog out_;
  std::vector<bool> header_has_redop_;
  Columns columns_;
  std::string pending_name_;
  bool is_new_ = false;
  int64_t info_lines_ = 0;
};

}  // namespace

int CollectiveRun::hosts() const {
  std::set<std::string> names;
  for (const CollectiveRank& rank : ranks) names.insert(rank.host);
  return static_cast<int>(names.size());
}

bool CollectiveRun::is_checked() const {
  return std::any_of(rows.begin(), rows.end(), [](const CollectiveRow& row) {
    return row.out_of_place.wrong || (row.in_place && row.in_place->wrong);
  });
}

int64_t CollectiveRun::wrong() const {
  int64_t total = 0;
  for (const CollectiveRow& row : rows) {
    total += row.out_of_place.wrong.value_or(0);
    if (row.in_place) total += row.in_place->wrong.value_or(0);
  }
  return total;
}

const CollectiveRow* CollectiveRun::peak(bool in_place) const {
  const CollectiveRow* best = nullptr;
  const auto bandwidth = [&](const CollectiveRow& row) {
    return in_place ? row.in_place->busbw : row.out_of_place.busbw;
  };
  for (const CollectiveRow& row : rows) {
    if (in_place && !row.in_place) continue;
    if (best == nullptr || bandwidth(row) > bandwidth(*best)) best = &row;
  }
  return best;
}

NcclTestsLog parse_nccl_tests(std::string_view text, const std::string& file) {
  LogReader reader(file);
  for (const TextLine& line : split_lines(text, file)) reader.take(line);
  return reader.finish();
}

}  // namespace ring
