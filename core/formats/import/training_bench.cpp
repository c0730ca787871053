#include <fmt/format.h>

#include <optional>

#include "core/error.h"
#include "core/formats/import/bench_log.h"
#include "core/formats/import/text_lines.h"

namespace ring {
namespace {

/// The cells of "| a | b |"; empty for another line.
std::vector<std::string> cells_of(std::string_view line) {
  std::vector<std::string> cells;
  line = trimmed(line);
  if (!line.starts_with("|") || line.size() < 2) return cells;
  line.remove_prefix(1);
  if (line.ends_with("|")) line.remove_suffix(1);
  while (true) {
    const size_t bar = line.find('|');
    cells.emplace_back(trimmed(line.substr(0, bar)));
    if (bar == std::string_view::npos) return cells;
    line.remove_prefix(bar + 1);
  }
}

bool is_rule(const std::vector<std::string>& cells) {
  for (const std::string& cell : cells) {
    if (cell.find_first_not_of("-: ") != std::string::npos || cell.empty()) return false;
  }
  return !cells.empty();
}

std::optional<size_t> column_with(const MarkdownTable& table, std::string_view word) {
  for (size_t i = 0; i < table.columns.size(); ++i) {
    if (contains(lower(table.columns[i]), word)) return i;
  }
  return std::nullopt;
}

/// The number that follows a word: "CP 4" -> 4.
int64_t number_after(std::string_view text, std::string_view word) {
  const auto rest = text_after(text, std::string(word) + " ");
  return rest ? leading_whole(*rest).value_or(0) : 0;
}

/// The number that stands before a word: "512 GPUs" -> 512.
int64_t number_before(std::string_view text, std::string_view word) {
  const std::vector<std::string_view> words = words_of(text);
  for (size_t i = 1; i < words.size(); ++i) {
    if (words[i].starts_with(word)) return whole_of(words[i - 1]).value_or(0);
  }
  return 0;
}

}  // namespace

std::vector<MarkdownTable> find_markdown_tables(std::string_view text, const std::string& file) {
  std::vector<MarkdownTable> tables;
  std::string caption;
  std::vector<std::string> last;
  bool is_open = false;
  for (const TextLine& line : split_lines(text, file)) {
    std::vector<std::string> cells = cells_of(line.text);
    if (cells.empty()) {
      is_open = false;
      if (!trimmed(line.text).empty()) caption = trimmed(line.text);
    } else if (is_rule(cells) && cells.size() == last.size() && !is_open) {
      tables.push_back({line.number, caption, last, {}});
      is_open = true;
    } else if (is_open) {
      if (cells.size() != tables.back().columns.size()) {
        throw_usage(fmt::format("{}:{}: {} cells under {} columns", file, line.number, cells.size(),
                                tables.back().columns.size()));
      }
      tables.back().rows.push_back(cells);
    }
    last = std::move(cells);
  }
  return tables;
}

TrainingBench parse_training_bench(std::string_view text, const std::string& file) {
  TrainingBench out;
  for (const MarkdownTable& table : find_markdown_tables(text, file)) {
    const auto how = column_with(table, "parallelism"), seq = column_with(table, "sequence");
    const auto rate = column_with(table, "tps"), memory = column_with(table, "memory");
    if (!how || !seq || !rate) {
      out.findings.push_back({FindingKind::kIgnored, "a table with other columns", table.line});
      continue;
    }
    for (size_t i = 0; i < table.rows.size(); ++i) {
      const std::vector<std::string>& cells = table.rows[i];
      TrainingBenchRow row;
      row.line = table.line + 1 + static_cast<int64_t>(i);
      row.caption = table.caption;
      row.gpus = number_before(table.caption, "GPUs");
      row.context_parallel = number_after(cells[*how], "CP");
      row.data_parallel = number_after(cells[*how], "FSDP");
      const auto length = whole_of(cells[*seq]);
      const auto tokens = number_of(cells[*rate]);
      if (!length || !tokens) {
        throw_usage(fmt::format("{}:{}: length or rate is no number", file, row.line));
      }
      row.seq_len = *length;
      row.tokens_per_s_per_gpu = *tokens;
      if (memory) row.memory_gib = number_of(cells[*memory]).value_or(0);
      out.rows.push_back(std::move(row));
    }
    out.findings.push_back({FindingKind::kFound,
                            fmt::format("{} rows: {}", table.rows.size(), table.caption),
                            table.line});
  }
  if (out.rows.empty()) {
    throw_usage(file + ": no table of parallelism, sequence length and TPS/GPU in it");
  }
  out.findings.push_back({FindingKind::kUnknown, "the attention's share of the step", 0});
  return out;
}

}  // namespace ring
