#include "experiments/table.h"

#include <algorithm>

#include "core/error.h"

namespace ring {

Table& Table::column(std::string heading, Align align) {
  columns_.push_back({std::move(heading), align});
  return *this;
}

void Table::row(std::vector<Cell> cells) {
  RING_ASSERT(cells.size() == columns_.size());
  rows_.push_back(std::move(cells));
}

std::vector<size_t> Table::widths() const {
  std::vector<size_t> widths;
  for (const Column& column : columns_) widths.push_back(display_width(column.heading));
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], display_width(row[i].text));
    }
  }
  return widths;
}

namespace {

std::string trimmed(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

}  // namespace

std::string Table::text(const Style& style) const {
  constexpr size_t kGap = 2;
  const std::vector<size_t> width = widths();
  const auto line = [&](const auto& cell_of) {
    std::string text(indent_, ' ');
    for (size_t i = 0; i < columns_.size(); ++i) {
      const Cell cell = cell_of(i);
      const std::string pad(width[i] - display_width(cell.text), ' ');
      const std::string painted = style.paint(cell.tone, cell.text);
      if (i > 0) text.append(kGap, ' ');
      text += columns_[i].align == Align::kLeft ? painted + pad : pad + painted;
    }
    return trimmed(std::move(text)) + "\n";
  };
  std::string text;
  const bool has_heading = std::any_of(columns_.begin(), columns_.end(),
                                       [](const Column& c) { return !c.heading.empty(); });
  if (has_heading) text += line([&](size_t i) { return Cell(columns_[i].heading, Tone::kDim); });
  for (const auto& row : rows_) text += line([&](size_t i) { return row[i]; });
  return text;
}

}  // namespace ring
