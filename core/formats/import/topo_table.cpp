#include "core/formats/import/topo_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"

namespace ring {
namespace {

constexpr size_t kMostColumns = 1024;

/// Words that follow the devices in a header: "CPU Affinity", "NUMA Affinity", "GPU NUMA ID".
bool is_tail_word(std::string_view word) {
  return word == "CPU" || word == "NUMA" || word == "GPU";
}

/// A header names a GPU first and no cell second.
std::optional<TopoTable> header_of(const TextLine& line, const std::string& file) {
  const std::vector<std::string_view> words = words_of(line.text);
  if (words.empty() || !index_after(words[0], "GPU")) return std::nullopt;
  TopoTable table;
  table.line = line.number;
  size_t at = 0;
  for (; at < words.size() && !is_tail_word(words[at]); ++at) {
    const std::string word(words[at]);
    const bool is_device =
        std::any_of(word.begin(), word.end(), [](char c) { return c >= '0' && c <= '9'; }) &&
        word.find_first_of(",:;|()/=") == std::string::npos && word.size() > 3;
    if (!is_device || word.starts_with("NV") != word.starts_with("NVMe")) return std::nullopt;
    if (std::find(table.columns.begin(), table.columns.end(), word) != table.columns.end()) {
      return std::nullopt;
    }
    table.columns.push_back(word);
  }
  if (table.columns.size() > kMostColumns) {
    throw_usage(fmt::format("{}:{}: {} columns", file, line.number, table.columns.size()));
  }
  for (; at < words.size(); ++at) table.tail.emplace_back(words[at]);
  return table;
}

std::optional<TopoRow> row_of(const TextLine& line, const TopoTable& table,
                              const std::string& file) {
  const std::vector<std::string_view> words = words_of(line.text);
  if (words.empty()) return std::nullopt;
  const auto known = std::find(table.columns.begin(), table.columns.end(), words[0]);
  if (known == table.columns.end()) return std::nullopt;
  if (words.size() - 1 < table.columns.size()) {
    throw_usage(fmt::format("{}:{}: the row of {} has {} cells, the header has {} columns", file,
                            line.number, words[0], words.size() - 1, table.columns.size()),
                line.is_cut ? "The file ends within the row." : "");
  }
  TopoRow row{line.number, std::string(words[0]), {}, {}};
  for (size_t i = 1; i < words.size(); ++i) {
    (i <= table.columns.size() ? row.cells : row.tail).emplace_back(words[i]);
  }
  return row;
}

}  // namespace

std::vector<TopoTable> find_topo_tables(const std::vector<TextLine>& lines,
                                        const std::string& file) {
  std::vector<TopoTable> tables;
  std::string title;
  bool is_open = false;
  for (const TextLine& line : lines) {
    if (is_open && !trimmed(line.text).empty()) {
      if (auto row = row_of(line, tables.back(), file)) {
        tables.back().rows.push_back(std::move(*row));
        continue;
      }
    }
    if (auto table = header_of(line, file)) {
      table->title = title;
      tables.push_back(std::move(*table));
      is_open = true;
      continue;
    }
    if (is_open && !tables.back().rows.empty()) is_open = false;
    if (!trimmed(line.text).empty()) title = trimmed(line.text);
  }
  std::erase_if(tables, [](const TopoTable& table) { return table.rows.empty(); });
  return tables;
}

}  // namespace ring
