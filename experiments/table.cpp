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

constexpr size_t kGap = 2;

std::string trimmed(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

}  // namespace

std::vector<std::vector<size_t>> Table::parts(const std::vector<size_t>& widths,
                                              size_t limit) const {
  std::vector<std::vector<size_t>> parts(1);
  size_t used = indent_;
  for (size_t i = 0; i < columns_.size(); ++i) {
    const bool is_full = limit > 0 && parts.back().size() > 1 && used + widths[i] > limit;
    // Two columns, key and text, stay together however long the text is.
    if (is_full && columns_.size() > 2) {
      parts.push_back({0});
      used = indent_ + widths[0] + kGap;
    }
    parts.back().push_back(i);
    used += widths[i] + kGap;
  }
  return parts;
}

std::string Table::part_text(const std::vector<size_t>& part, const std::vector<size_t>& widths,
                             const Style& style) const {
  const auto line = [&](const auto& cell_of) {
    std::string text(indent_, ' ');
    for (const size_t i : part) {
      const Cell cell = cell_of(i);
      const std::string pad(widths[i] - display_width(cell.text), ' ');
      const std::string painted = style.paint(cell.tone, cell.text);
      if (i != part.front()) text.append(kGap, ' ');
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

std::string Table::text(const Style& style) const {
  const std::vector<size_t> width = widths();
  std::string text;
  for (const auto& part : parts(width, style.columns)) {
    if (!text.empty()) text += "\n";
    text += part_text(part, width, style);
  }
  return text;
}

}  // namespace ring
