// Searching the timeline: what is found, and going from one find to the next.
#include <algorithm>

#include "core/error.h"
#include "core/slice_search.h"
#include "gui/timeline/timeline_impl.h"

namespace ring::gui {
namespace {

/// The bars of the slices that were found, row by row.
std::vector<RowLevels> levels_of(const ModelRun& run, const std::vector<uint32_t>& found) {
  std::vector<bool> is_found(run.timeline().slices.size(), false);
  for (const uint32_t slice : found) is_found[slice] = true;
  std::vector<RowLevels> levels;
  levels.reserve(run.rows.size());
  for (const ModelRow& row : run.rows) {
    std::vector<LevelBar> bars;
    for (const LevelBar& bar : row.bars.bars()) {
      if (is_found[bar.slice]) bars.push_back(bar);
    }
    levels.emplace_back(std::move(bars));
  }
  return levels;
}

}  // namespace

int64_t TimelineView::Impl::search(const QString& text) {
  search_text = text;
  hits.reset();
  hit_order.clear();
  QString answer;
  bool is_error = false;
  if (model && !text.trimmed().isEmpty()) {
    try {
      const SliceQuery query = parse_slice_query(text.toStdString());
      hits = std::make_unique<SearchHits>();
      for (const auto origin : {TimelineOrigin::kMeasured, TimelineOrigin::kPredicted}) {
        const ModelRun* run = model->run(origin);
        if (run == nullptr) continue;
        const std::vector<uint32_t> found = matching_slices(run->timeline(), query);
        (origin == TimelineOrigin::kMeasured ? hits->measured : hits->predicted) =
            levels_of(*run, found);
        for (const uint32_t slice : found) hit_order.push_back({origin, slice});
      }
      hits->count = std::ssize(hit_order);
      const auto start = [&](SliceRef ref) { return model->slice(ref)->start_ps; };
      std::stable_sort(hit_order.begin(), hit_order.end(),
                       [&](SliceRef a, SliceRef b) { return start(a) < start(b); });
      answer = hits->count == 1 ? QStringLiteral("1 op found")
                                : QStringLiteral("%1 ops found").arg(hits->count);
    } catch (const Error& error) {
      hits.reset();
      hit_order.clear();
      answer = QString::fromUtf8(error.what());
      is_error = true;
    }
  }
  search_bar->set_text(text);
  search_bar->set_answer(answer, is_error);
  place_children();
  Q_EMIT view.search_changed(text, std::ssize(hit_order));
  refresh();
  return std::ssize(hit_order);
}

void TimelineView::Impl::next_hit(int by) {
  const auto is_shown = [&](SliceRef ref) { return layout.row_of(*model, ref).has_value(); };
  const auto count = std::ssize(hit_order);
  if (count == 0) return;
  // From the selected one, else from the first that starts at the left edge or later.
  auto at = selected ? std::find(hit_order.begin(), hit_order.end(), *selected) - hit_order.begin()
                     : count;
  if (at == count) {
    const auto from = std::partition_point(hit_order.begin(), hit_order.end(), [&](SliceRef ref) {
      return model->slice(ref)->start_ps < range.from_ps();
    });
    at = from - hit_order.begin() - (by > 0 ? 1 : 0);
  }
  for (ptrdiff_t tried = 0; tried < count; ++tried) {
    at = (at + by + count) % count;
    if (is_shown(hit_order[static_cast<size_t>(at)])) {
      return select(hit_order[static_cast<size_t>(at)], true);
    }
  }
}

}  // namespace ring::gui
