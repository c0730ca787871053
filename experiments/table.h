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
  /// blanks at line ends.
  std::string text(const Style& style) const;

 private:
  struct Column {
    std::string heading;
    Align align;
  };

  std::vector<size_t> widths() const;

  size_t indent_;
  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

}  // namespace ring
