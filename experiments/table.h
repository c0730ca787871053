// Table: rows of text in aligned columns, for people.
#pragma once

#include <string>
#include <vector>

#include "experiments/style.h"

namespace ring {

enum class Align { kLeft, kRight };

struct Cell {
  std::string text;
  Tone tone = Tone::kPlain;

  Cell(std::string text_in, Tone tone_in = Tone::kPlain)  // NOLINT: cells are written as texts
      : text(std::move(text_in)), tone(tone_in) {}
  Cell(const char* text_in) : text(text_in) {}  // NOLINT: as above
};

class Table {
 public:
  /// `indent` blanks stand before every line.
  explicit Table(size_t indent = 2) : indent_(indent) {}

  Table& column(std::string heading, Align align = Align::kRight);
  /// As many cells as there are columns.
  void row(std::vector<Cell> cells);
  bool is_empty() const { return rows_.empty(); }

  /// Heading line (unless all headings are empty) and rows, each ended by a line break, without
  /// blanks at line ends. A table wider than the terminal continues below with its other columns,
  /// the first one repeated.
  std::string text(const Style& style) const;

 private:
  struct Column {
    std::string heading;
    Align align;
  };

  std::vector<size_t> widths() const;
  /// The columns of each part that fits into `limit` columns of a terminal.
  std::vector<std::vector<size_t>> parts(const std::vector<size_t>& widths, size_t limit) const;
  std::string part_text(const std::vector<size_t>& part, const std::vector<size_t>& widths,
                        const Style& style) const;

  size_t indent_;
  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

}  // namespace ring
