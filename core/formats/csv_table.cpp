#include "core/formats/csv_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/error.h"

namespace ring {
namespace {

class Reader {
 public:
  Reader(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  bool is_done() const { return at_ >= text_.size(); }
  int64_t line() const { return line_; }

  std::vector<std::string> row() {
    std::vector<std::string> fields;
    bool goes_on = true;
    while (goes_on) {
      fields.push_back(field());
      goes_on = at_ < text_.size() && text_[at_] == ',';
      if (goes_on) ++at_;
    }
    end_line();
    return fields;
  }

 private:
  std::string field() {
    if (at_ < text_.size() && text_[at_] == '"') return quoted();
    const size_t end = std::min(text_.find_first_of(",\r\n", at_), text_.size());
    std::string_view field = text_.substr(at_, end - at_);
    at_ = end;
    const size_t first = field.find_first_not_of(" \t");
    if (first == std::string_view::npos) return {};
    return std::string(field.substr(first, field.find_last_not_of(" \t") - first + 1));
  }

  std::string quoted() {
    const int64_t opened = line_;
    std::string field;
    for (++at_; at_ < text_.size(); ++at_) {
      if (text_[at_] == '"') {
        if (at_ + 1 < text_.size() && text_[at_ + 1] == '"') {
          ++at_;
        } else {
          ++at_;
          return field;
        }
      }
      if (text_[at_] == '\n') ++line_;
      field += text_[at_];
    }
    throw_usage(fmt::format("{}:{}: a quoted field is never closed", name_, opened));
  }

  void end_line() {
    if (at_ < text_.size() && text_[at_] == '\r') ++at_;
    if (at_ < text_.size() && text_[at_] != '\n') {
      throw_usage(fmt::format("{}:{}: text after a quoted field", name_, line_));
    }
    ++at_;
    ++line_;
  }

  std::string_view text_;
  const std::string& name_;
  size_t at_ = 0;
  int64_t line_ = 1;
};

}  // namespace

CsvTable CsvTable::parse(std::string_view text, const std::string& name) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  CsvTable table;
  table.name_ = name;
  Reader reader(text, name);
  if (reader.is_done()) throw_usage(name + ": an empty file has no heading line");
  table.columns_ = reader.row();
  for (size_t i = 0; i < table.columns_.size(); ++i) {
    const std::string& column = table.columns_[i];
    if (std::find(table.columns_.begin() + static_cast<ptrdiff_t>(i) + 1, table.columns_.end(),
                  column) != table.columns_.end()) {
      throw_usage(fmt::format("{}:1: two columns are called \"{}\"", name, column));
    }
  }
  while (!reader.is_done()) {
    const int64_t line = reader.line();
    std::vector<std::string> row = reader.row();
    if (row.size() == 1 && row.front().empty()) continue;
    if (row.size() != table.columns_.size()) {
      throw_usage(fmt::format("{}:{}: {} fields, but the heading has {}", name, line, row.size(),
                              table.columns_.size()));
    }
    table.rows_.push_back(std::move(row));
    table.lines_.push_back(line);
  }
  return table;
}

int CsvTable::find(std::string_view column) const {
  const auto found = std::find(columns_.begin(), columns_.end(), column);
  return found == columns_.end() ? -1 : static_cast<int>(found - columns_.begin());
}

const std::string& CsvTable::at(size_t row, std::string_view column) const {
  static const std::string kNothing;
  const int index = find(column);
  return index < 0 ? kNothing : rows_[row][static_cast<size_t>(index)];
}

void CsvTable::require(const std::vector<std::string_view>& columns) const {
  std::vector<std::string_view> missing;
  for (const std::string_view column : columns) {
    if (!has(column)) missing.push_back(column);
  }
  if (!missing.empty()) {
    throw_usage(fmt::format("{}: missing columns: {}", name_, fmt::join(missing, ", ")));
  }
}

std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string cell = "\"";
  for (const char c : text) {
    if (c == '"') cell += '"';
    cell += c;
  }
  return cell + "\"";
}

}  // namespace ring
