// What is selected: one op, or a range of time over some rows with its statistics; and moving from
// op to op.
#include <QAccessible>
#include <algorithm>
#include <cmath>

#include "gui/timeline/timeline_impl.h"

namespace ring::gui {
namespace {

/// While a range is dragged its statistics are shown at once up to so many bars.
constexpr size_t kMostLiveBars = 100'000;
constexpr double kReach = 3;  ///< A bar this near to the pointer is meant.

/// Bars of a run in the area, as the numbers of their slices.
std::vector<uint32_t> slices_in(const ModelRun& run, TimelineOrigin origin,
                                const TimelineLayout& layout, const SelectedArea& area) {
  std::vector<uint32_t> slices;
  for (int i = area.first_row; i < area.last_row; ++i) {
    const LayoutRow& row = layout.rows()[static_cast<size_t>(i)];
    const int number = origin == TimelineOrigin::kMeasured ? row.measured : row.predicted;
    if (row.kind != RowKind::kBars || number < 0) continue;
    const RowLevels& bars = run.rows[static_cast<size_t>(number)].bars;
    const auto [first, last] = bars.bars_between(area.from_ps, area.to_ps);
    for (size_t b = first; b < last; ++b) {
      if (bars.bars()[b].of_class != kWaitClass) slices.push_back(bars.bars()[b].slice);
    }
  }
  return slices;
}

size_t bars_in(const TimelineModel& model, const TimelineLayout& layout, const SelectedArea& area) {
  size_t count = 0;
  for (int i = area.first_row; i < area.last_row; ++i) {
    const LayoutRow& row = layout.rows()[static_cast<size_t>(i)];
    if (row.kind != RowKind::kBars) continue;
    for (const auto origin : {TimelineOrigin::kMeasured, TimelineOrigin::kPredicted}) {
      const int number = origin == TimelineOrigin::kMeasured ? row.measured : row.predicted;
      if (number < 0) continue;
      const auto [first, last] =
          model.run(origin)->rows[static_cast<size_t>(number)].bars.bars_between(area.from_ps,
                                                                                 area.to_ps);
      count += last - first;
    }
  }
  return count;
}

}  // namespace

void TimelineView::Impl::set_area(std::optional<SelectedArea> dragged, bool is_final) {
  if (!dragged && !area && selection.is_empty) return;
  area = dragged;
  if (!area) extend_from.reset();
  measure_area(is_final);
  refresh();
}

void TimelineView::Impl::measure_area(bool is_final) {
  if (!area) {
    selection = {};
    Q_EMIT view.selection_changed(selection);
    return;
  }
  if (!is_final && bars_in(*model, layout, *area) > kMostLiveBars) return;
  selection = {};
  selection.is_empty = false;
  selection.from_ps = area->from_ps;
  selection.to_ps = area->to_ps;
  for (int i = area->first_row; i < area->last_row; ++i) {
    const int rank = layout.rows()[static_cast<size_t>(i)].rank;
    if (selection.ranks.empty() || selection.ranks.back() != rank) selection.ranks.push_back(rank);
  }
  for (const auto origin : {TimelineOrigin::kMeasured, TimelineOrigin::kPredicted}) {
    const ModelRun* run = model->run(origin);
    if (run == nullptr || !shows(mode, origin)) continue;
    auto& statistics =
        origin == TimelineOrigin::kMeasured ? selection.measured : selection.predicted;
    statistics = slice_statistics(run->timeline(), slices_in(*run, origin, layout, *area));
  }
  Q_EMIT view.selection_changed(selection);
}

void TimelineView::Impl::select(std::optional<SliceRef> slice, bool reveals) {
  if (slice && (!model || model->slice(*slice) == nullptr)) slice.reset();
  selected = slice;
  if (slice && reveals) reveal(*slice);
  view.setAccessibleDescription(slice ? view.describe(*slice)
                                      : QStringLiteral("No op is selected"));
  QAccessibleEvent changed(&view, QAccessible::DescriptionChanged);
  QAccessible::updateAccessibility(&changed);
  Q_EMIT view.slice_selected(slice);
  refresh();
}

/// Scrolls and pans as little as shows the slice, with its whole rank where that has room.
void TimelineView::Impl::reveal(SliceRef ref) {
  const auto number = layout.row_of(*model, ref);
  if (number) {
    const LayoutRow& row = layout.rows()[static_cast<size_t>(*number)];
    const int height = geometry().plot.height();
    const int gap = layout.metrics().group_gap + layout.metrics().bar;
    const auto& groups = layout.groups();
    const auto group = std::find_if(groups.begin(), groups.end(),
                                    [&](const LayoutGroup& of) { return of.rank == row.rank; });
    const bool is_whole = group != groups.end() && group->height + gap <= height;
    const int top = is_whole ? group->y : row.y;
    const int bottom = is_whole ? group->y + group->height : row.y + row.height;
    if (top < scroll_y) scroll_to(is_whole ? top : top - gap);
    if (bottom > scroll_y + height) scroll_to(bottom - height + (is_whole ? 0 : gap));
  }
  const Slice& slice = *model->slice(ref);
  const auto from = static_cast<double>(range.from_ps()), to = static_cast<double>(range.to_ps());
  const auto begin = static_cast<double>(slice.start_ps), end = static_cast<double>(slice.end_ps);
  if (end >= from && begin <= to && (begin >= from || end <= to || end - begin > to - from)) return;
  const double shift = (begin + end) / 2 - (from + to) / 2;
  if (range.move_to(from + shift, to + shift, RangeMove::kPan)) range_changed();
}

void TimelineView::Impl::set_hovered(std::optional<SliceRef> slice) {
  if (hovered == slice) return;
  hovered = slice;
  Q_EMIT view.hovered(slice);
}

std::optional<std::pair<int, TimelineOrigin>> TimelineView::Impl::line_at(int y) const {
  const auto number = layout.row_at(y);
  if (!number) return std::nullopt;
  const LayoutRow& row = layout.rows()[static_cast<size_t>(*number)];
  if (row.kind != RowKind::kBars) return std::nullopt;
  const bool is_predicted =
      row.measured < 0 ||
      (row.predicted >= 0 && y >= layout.line_y(row, TimelineOrigin::kPredicted));
  return std::pair(*number, is_predicted ? TimelineOrigin::kPredicted : TimelineOrigin::kMeasured);
}

std::optional<SliceRef> TimelineView::Impl::slice_at(QPointF at) const {
  const QRect plot = geometry().plot;
  if (!model || !plot.contains(at.toPoint())) return std::nullopt;
  const auto line = line_at(static_cast<int>(std::floor(at.y())) - plot.top() + scroll_y);
  if (!line) return std::nullopt;
  const auto& [number, origin] = *line;
  const LayoutRow& row = layout.rows()[static_cast<size_t>(number)];
  const int in_run = origin == TimelineOrigin::kMeasured ? row.measured : row.predicted;
  const RowLevels& bars = model->run(origin)->rows[static_cast<size_t>(in_run)].bars;
  const TimeScale times = scale();
  const auto found =
      bars.bar_at(static_cast<Picoseconds>(std::llround(times.time_at(at.x()))),
                  static_cast<Picoseconds>(std::llround(kReach * times.ps_per_unit())));
  if (!found) return std::nullopt;
  return SliceRef{origin, bars.bars()[*found].slice};
}

std::optional<SliceRef> TimelineView::Impl::first_visible() const {
  const auto [first, last] = layout.rows_between(scroll_y, scroll_y + geometry().plot.height());
  for (int i = first; i < last; ++i) {
    const LayoutRow& row = layout.rows()[static_cast<size_t>(i)];
    if (row.kind != RowKind::kBars) continue;
    const bool is_measured = row.measured >= 0;
    const auto origin = is_measured ? TimelineOrigin::kMeasured : TimelineOrigin::kPredicted;
    const int number = is_measured ? row.measured : row.predicted;
    const RowLevels& bars = model->run(origin)->rows[static_cast<size_t>(number)].bars;
    auto [begin, end] = bars.bars_between(range.from_ps(), range.to_ps());
    while (begin < end && bars.bars()[begin].of_class == kWaitClass) ++begin;
    if (begin < end) return SliceRef{origin, bars.bars()[begin].slice};
  }
  return std::nullopt;
}

void TimelineView::Impl::step(int by, bool extends) {
  if (!model) return;
  const auto from = selected && layout.row_of(*model, *selected) ? selected : first_visible();
  if (!from) return;
  std::optional<SliceRef> to = from;
  if (from == selected) {
    const ModelRun& run = *model->run(from->origin);
    const RowLevels& row = run.row_of(from->slice).bars;
    const auto bars = row.bars();
    auto at = static_cast<ptrdiff_t>(
        row.bar_of(from->slice, run.slice(from->slice).start_ps).value_or(0));
    do {
      at += by;
    } while (at >= 0 && at < std::ssize(bars) &&
             bars[static_cast<size_t>(at)].of_class == kWaitClass);
    if (at >= 0 && at < std::ssize(bars)) to->slice = bars[static_cast<size_t>(at)].slice;
  }
  const auto anchor = extends ? extend_from.value_or(*from) : *to;
  select(to, true);
  view.set_cursor_ps(model->slice(*to)->start_ps);
  if (!extends) return;
  const Slice& a = *model->slice(anchor);
  const Slice& b = *model->slice(*to);
  const int row = *layout.row_of(*model, *to);
  set_area(SelectedArea{std::min(a.start_ps, b.start_ps),
                        std::max({a.end_ps, b.end_ps, std::min(a.start_ps, b.start_ps) + 1}), row,
                        row + 1},
           true);
  extend_from = anchor;
}

void TimelineView::Impl::change_row(int by) {
  if (!model) return;
  const auto from = selected && layout.row_of(*model, *selected) ? selected : std::nullopt;
  if (!from) return select(first_visible(), true);
  // Lines of bars from top to bottom.
  std::vector<std::pair<TimelineOrigin, int>> lines;
  ptrdiff_t at = -1;
  const ModelRun& run = *model->run(from->origin);
  for (const LayoutRow& row : layout.rows()) {
    if (row.kind != RowKind::kBars) continue;
    for (const auto origin : {TimelineOrigin::kMeasured, TimelineOrigin::kPredicted}) {
      const int number = origin == TimelineOrigin::kMeasured ? row.measured : row.predicted;
      if (number < 0) continue;
      if (origin == from->origin &&
          static_cast<uint32_t>(number) == run.row_of_slice[from->slice]) {
        at = std::ssize(lines);
      }
      lines.emplace_back(origin, number);
    }
  }
  at += by;
  if (at < 0 || at >= std::ssize(lines)) return;
  const auto& [origin, number] = lines[static_cast<size_t>(at)];
  const auto& row = model->run(origin)->rows[static_cast<size_t>(number)].bars;
  const Picoseconds time_ps = run.slice(from->slice).start_ps;
  const auto found = row.bar_at(time_ps, model->end_ps - model->begin_ps + 1);
  if (!found) return;
  const SliceRef to{origin, row.bars()[*found].slice};
  select(to, true);
  view.set_cursor_ps(model->slice(to)->start_ps);
}

/// Messages first; of several flows of a kind the one that came last, or comes first.
void TimelineView::Impl::follow(bool forward) {
  if (!selected) return;
  const ModelRun& run = *model->run(selected->origin);
  const auto flows = forward ? run.flows.out_of(selected->slice) : run.flows.into(selected->slice);
  const Flow* best = nullptr;
  for (const Flow& flow : flows) {
    if (best != nullptr && flow.kind > best->kind) continue;
    const bool is_first = best == nullptr || flow.kind < best->kind;
    const bool is_nearer =
        !is_first && (forward ? run.slice(flow.slice).start_ps < run.slice(best->slice).start_ps
                              : run.slice(flow.slice).end_ps > run.slice(best->slice).end_ps);
    if (is_first || is_nearer) best = &flow;
  }
  if (best == nullptr) return;
  const SliceRef to{selected->origin, best->slice};
  select(to, true);
  view.set_cursor_ps(run.slice(to.slice).start_ps);
}

std::optional<std::pair<Picoseconds, Picoseconds>> TimelineView::Impl::selected_times() const {
  if (area) return std::pair(area->from_ps, area->to_ps);
  if (!selected) return std::nullopt;
  const Slice& slice = *model->slice(*selected);
  return std::pair(slice.start_ps, slice.end_ps);
}

}  // namespace ring::gui
