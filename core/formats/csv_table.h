// CsvTable: a comma-separated file with a heading line, quoted fields as RFC 4180 has them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ring {

/// The text as one field of a file: quoted where a comma, quote or line break is in it.
std::string csv_cell(const std::string& text);

class CsvTable {
 public:
  /// `name` is the file's name in messages. Throws Error(kUsage) with file and line for a missing
  /// or doubled heading, a row with another number of fields, or a quote that is never closed.
  static CsvTable parse(std::string_view text, const std::string& name);

  const std::string& name() const { return name_; }
  size_t rows() const { return rows_.size(); }
  bool has(std::string_view column) const { return find(column) >= 0; }
  /// Blanks at both ends are gone. Empty where the table has no such column.
  const std::string& at(size_t row, std::string_view column) const;
  const std::vector<std::string>& cells(size_t row) const { return rows_[row]; }
  /// Line of the file on which the row starts, from 1.
  int64_t line(size_t row) const { return lines_[row]; }
  /// Throws Error(kUsage) naming the columns that are missing.
  void require(const std::vector<std::string_view>& columns) const;

 private:
  int find(std::string_view column) const;

  std::string name_;
  std::vector<std::string> columns_;
  std::vector<std::vector<std::string>> rows_;
  std::vector<int64_t> lines_;
};

}  // namespace ring
