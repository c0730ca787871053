#include "gui/timeline/timeline_layout.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace ring::gui {
namespace {

struct LaneKey {
  int lane, overflow;
  auto operator<=>(const LaneKey&) const = default;
};

/// First index of `items`, sorted by `rank_of`, that belongs to the rank.
template <typename Items, typename RankOf>
size_t first_of_rank(const Items& items, int rank, RankOf rank_of) {
  return static_cast<size_t>(
      std::partition_point(items.begin(), items.end(),
                           [&](const auto& item) { return rank_of(item) < rank; }) -
      items.begin());
}

QString rate_text(double bytes_per_s) {
  return QString::fromStdString(format_bandwidth(bytes_per_s));
}

}  // namespace

RowMetrics::RowMetrics(int font_height)
    : bar(std::max(12, font_height)),
      bar_gap(2),
      row_gap(std::max(4, font_height / 3)),
      curve(std::max(24, 2 * font_height)),
      group_gap(std::max(5, font_height * 2 / 5)) {}

bool shows(LayoutMode mode, TimelineOrigin origin) {
  switch (mode) {
    case LayoutMode::kMeasured:
      return origin == TimelineOrigin::kMeasured;
    case LayoutMode::kPredicted:
      return origin == TimelineOrigin::kPredicted;
    case LayoutMode::kStacked:
    case LayoutMode::kOverlaid:
      return true;
  }
  return true;
}

TimelineLayout::TimelineLayout(const TimelineModel& model, LayoutMode mode,
                               const RowMetrics& metrics, uint64_t version)
    : mode_(mode), metrics_(metrics), version_(version) {
  if (model.measured) measured_rows_.assign(model.measured->rows.size(), -1);
  if (model.predicted) predicted_rows_.assign(model.predicted->rows.size(), -1);
  for (int rank = 0; rank < model.ranks; ++rank) {
    const auto first = static_cast<int>(rows_.size());
    const int top = height_;
    height_ += metrics_.group_gap;
    add_bar_rows(model, rank);
    add_curve_rows(model, rank);
    const int count = static_cast<int>(rows_.size()) - first;
    if (count == 0) {
      height_ = top;
      continue;
    }
    height_ += metrics_.group_gap;
    groups_.push_back({rank, top, height_ - top, first, count});
  }
}

void TimelineLayout::push(LayoutRow row, int height) {
  row.y = height_;
  row.height = height;
  height_ += height + metrics_.row_gap;
  rows_.push_back(std::move(row));
}

void TimelineLayout::add_bar_rows(const TimelineModel& model, int rank) {
  std::map<LaneKey, LayoutRow> lanes;
  for (const auto origin : {TimelineOrigin::kMeasured, TimelineOrigin::kPredicted}) {
    const ModelRun* run = model.run(origin);
    if (run == nullptr || !shows(mode_, origin)) continue;
    size_t i = first_of_rank(run->rows, rank, [](const ModelRow& row) { return row.rank; });
    for (; i < run->rows.size() && run->rows[i].rank == rank; ++i) {
      LayoutRow& row = lanes[{run->rows[i].lane, run->rows[i].overflow}];
      row.rank = rank;
      if (row.label.isEmpty()) row.label = QString::fromStdString(run->rows[i].label);
      (origin == TimelineOrigin::kMeasured ? row.measured : row.predicted) = static_cast<int>(i);
    }
  }
  for (auto& [key, row] : lanes) {
    const auto number = static_cast<int>(rows_.size());
    if (row.measured >= 0) measured_rows_[static_cast<size_t>(row.measured)] = number;
    if (row.predicted >= 0) predicted_rows_[static_cast<size_t>(row.predicted)] = number;
    int height = metrics_.bar;
    if (row.measured >= 0 && row.predicted >= 0) {
      height += mode_ == LayoutMode::kStacked ? metrics_.bar_gap + metrics_.bar : metrics_.bar / 2;
    }
    push(row, height);
  }
}

void TimelineLayout::add_curve_rows(const TimelineModel& model, int rank) {
  const auto r = static_cast<size_t>(rank);
  if (mode_ == LayoutMode::kOverlaid && r < model.drift.size() && !model.drift[r].is_empty()) {
    LayoutRow row{RowKind::kDifference, rank, 0, 0, QStringLiteral("difference"), {}, rank, rank};
    row.detail = QStringLiteral("±") +
                 QString::fromStdString(format_time(static_cast<Picoseconds>(model.peak_drift_ps)));
    push(row, metrics_.curve);
  }
  std::map<int, LayoutRow> links;
  LayoutRow memory{RowKind::kMemory, rank, 0, 0, QStringLiteral("memory"), {}, -1, -1};
  for (const auto origin : {TimelineOrigin::kMeasured, TimelineOrigin::kPredicted}) {
    const ModelRun* run = model.run(origin);
    if (run == nullptr || !shows(mode_, origin)) continue;
    const bool is_measured = origin == TimelineOrigin::kMeasured;
    size_t i = first_of_rank(run->links, rank, [](const LinkRate& link) { return link.from; });
    for (; i < run->links.size() && run->links[i].from == rank; ++i) {
      const LinkRate& link = run->links[i];
      LayoutRow& row = links[link.to];
      row.kind = RowKind::kLink;
      row.rank = rank;
      row.label = link.to >= 0 ? QStringLiteral("link to %1").arg(link.to)
                               : QStringLiteral("%1 links").arg(link.links);
      row.detail = rate_text(model.peak_bytes_per_s);
      (is_measured ? row.measured : row.predicted) = static_cast<int>(i);
    }
    if (r < run->memory.size() && run->memory[r].bytes.peak() > 0) {
      (is_measured ? memory.measured : memory.predicted) = rank;
      memory.detail =
          QString::fromStdString(format_bytes(static_cast<Bytes>(model.peak_memory_bytes)));
    }
  }
  for (auto& [to, row] : links) push(row, metrics_.curve);
  if (memory.measured >= 0 || memory.predicted >= 0) push(memory, metrics_.curve);
}

std::pair<int, int> TimelineLayout::rows_between(int top, int bottom) const {
  const auto first = std::partition_point(
      rows_.begin(), rows_.end(), [&](const LayoutRow& row) { return row.y + row.height <= top; });
  const auto last = std::partition_point(first, rows_.end(),
                                         [&](const LayoutRow& row) { return row.y < bottom; });
  return {static_cast<int>(first - rows_.begin()), static_cast<int>(last - rows_.begin())};
}

std::pair<int, int> TimelineLayout::groups_between(int top, int bottom) const {
  const auto first =
      std::partition_point(groups_.begin(), groups_.end(),
                           [&](const LayoutGroup& group) { return group.y + group.height <= top; });
  const auto last = std::partition_point(
      first, groups_.end(), [&](const LayoutGroup& group) { return group.y < bottom; });
  return {static_cast<int>(first - groups_.begin()), static_cast<int>(last - groups_.begin())};
}

std::optional<int> TimelineLayout::row_at(int y) const {
  const auto [first, last] = rows_between(y, y + 1);
  if (first == last) return std::nullopt;
  return first;
}

int TimelineLayout::line_y(const LayoutRow& row, TimelineOrigin origin) const {
  if (origin == TimelineOrigin::kMeasured || row.measured < 0) return row.y;
  if (mode_ == LayoutMode::kOverlaid) return row.y + row.height - line_height(row, origin);
  return row.y + metrics_.bar + metrics_.bar_gap;
}

int TimelineLayout::line_height(const LayoutRow& row, TimelineOrigin origin) const {
  const bool is_over = mode_ == LayoutMode::kOverlaid && row.measured >= 0 && row.predicted >= 0;
  if (!is_over) return metrics_.bar;
  return origin == TimelineOrigin::kPredicted ? metrics_.bar / 2 : row.height;
}

std::optional<int> TimelineLayout::row_of(const TimelineModel& model, SliceRef slice) const {
  const ModelRun* run = model.run(slice.origin);
  if (run == nullptr || slice.slice >= run->row_of_slice.size()) return std::nullopt;
  const auto& rows = slice.origin == TimelineOrigin::kMeasured ? measured_rows_ : predicted_rows_;
  const int row = rows[run->row_of_slice[slice.slice]];
  if (row < 0) return std::nullopt;
  return row;
}

ViewGeometry::ViewGeometry(QSize size, int gutter_width, int font_height, int header_lines) {
  const int width = size.width();
  const int gutter_w = std::min(gutter_width, width / 2);
  int y = 0;
  header_line = font_height + 10;
  header = QRect(0, y, width, header_line + (header_lines - 1) * (font_height + kLegendGap));
  y += header.height();
  minimap = QRect(gutter_w, y + 2, std::max(1, width - gutter_w), 2 * font_height);
  y += minimap.height() + 4;
  ruler = QRect(gutter_w, y, minimap.width(), font_height + 9);
  y += ruler.height();
  const int rest = std::max(1, size.height() - y);
  gutter = QRect(0, y, gutter_w, rest);
  plot = QRect(gutter_w, y, minimap.width(), rest);
}

}  // namespace ring::gui
