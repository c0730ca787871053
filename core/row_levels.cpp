#include "core/row_levels.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "core/error.h"

namespace ring {
namespace {

/// The coarsest level still tells this many places of the row apart.
constexpr Picoseconds kFewestWindows = 1024;
/// A level is kept when it has at most this share of the bars of the one before.
constexpr double kWorthKeeping = 0.7;
constexpr int kFillStep = 17;

/// Bars drawn as one: what fills it. Most are of one class, and then need no list of classes.
struct Mix {
  double total = 0;
  int bars = 0;
  uint32_t slice = 0;
  BarClass first_class = 0;
  bool has_classes = false;
  std::array<double, kBarClasses> filled;  ///< By class, with `has_classes` only.

  void clear() {
    total = 0;
    bars = 0;
    has_classes = false;
  }
  void add(BarClass of_class, double amount, uint32_t of_slice) {
    if (bars == 0) {
      first_class = of_class;
      slice = of_slice;
    }
    // Where nothing has any length, work is shown rather than waiting.
    if (total == 0 && first_class == kWaitClass) first_class = of_class;
    ++bars;
    if (!has_classes && total > 0 && of_class != first_class) {
      has_classes = true;
      filled.fill(0);
      filled[first_class] = total;
    }
    if (has_classes) filled[of_class] += amount;
    if (total == 0) first_class = amount > 0 ? of_class : first_class;
    total += amount;
  }
  BarClass most() const {
    if (!has_classes) return first_class;
    return static_cast<BarClass>(std::max_element(filled.begin(), filled.end()) - filled.begin());
  }
};

uint8_t fill_of(double share) {
  return static_cast<uint8_t>(std::lround(std::clamp(share, 0.0, 1.0) * 255));
}

/// Joins the bars shorter than a window that begin in the same window.
std::vector<LevelBar> folded(std::span<const LevelBar> bars, Picoseconds window_ps) {
  std::vector<LevelBar> out;
  Mix mix;
  LevelBar group;
  Picoseconds window = 0;
  const auto flush = [&] {
    if (mix.bars == 0) return;
    if (mix.bars > 1) {
      const auto length = static_cast<double>(group.end_ps - group.begin_ps);
      group.of_class = mix.most();
      group.fill = length > 0 ? fill_of(mix.total / length) : 255;
      group.is_folded = true;
    }
    out.push_back(group);
    mix.clear();
  };
  for (const LevelBar& bar : bars) {
    const Picoseconds length = bar.end_ps - bar.begin_ps;
    const bool is_short = length < window_ps;
    const Picoseconds at = bar.begin_ps / window_ps;
    if (!is_short || at != window) flush();
    if (!is_short) {
      out.push_back(bar);
      continue;
    }
    window = at;
    if (mix.bars == 0) group = bar;
    group.end_ps = std::max(group.end_ps, bar.end_ps);
    mix.add(bar.of_class, static_cast<double>(length), bar.slice);
  }
  flush();
  return out;
}

/// Collects runs of columns.
class ColumnFolder {
 public:
  explicit ColumnFolder(std::vector<PixelRun>& out) : out_(out), first_(out.size()) {}

  /// A bar of a column or more.
  void add_wide(double begin, double end, const LevelBar& bar, int32_t columns) {
    flush();
    const int32_t from = static_cast<int32_t>(begin + 0.5);
    const int32_t to = std::min(columns, static_cast<int32_t>(end + 0.5));
    if (from >= to) return;
    // It has most of the columns at its ends.
    while (out_.size() > first_ && out_.back().begin >= from) out_.pop_back();
    if (out_.size() > first_) out_.back().end = std::min(out_.back().end, from);
    push({from, to, bar.slice, bar.of_class, 255, false});
  }

  /// A narrower bar, or a folded one.
  void add_narrow(double begin, double end, const LevelBar& bar) {
    const double share = bar.fill * (1.0 / 255);
    do {
      const auto column = static_cast<int32_t>(begin);  // Begins are not negative.
      const double stop = std::min(end, column + 1.0);
      if (mix_.bars > 0 && column != column_) flush();
      column_ = column;
      mix_.add(bar.of_class, (stop - begin) * share, bar.slice);
      begin = stop;
    } while (begin < end);
  }

  void flush() {
    if (mix_.bars == 0) return;
    const int32_t column = column_;
    const int steps = std::max(1, static_cast<int>(mix_.total * (255.0 / kFillStep) + 0.5));
    const auto fill = static_cast<uint8_t>(std::min(255, steps * kFillStep));
    const PixelRun run{column, column + 1, mix_.slice, mix_.most(), fill, true};
    mix_.clear();
    if (out_.size() > first_ && out_.back().end > column) return;  // A wide bar has most of it.
    push(run);
  }

 private:
  void push(const PixelRun& run) {
    if (out_.size() > first_ && run.is_folded) {
      PixelRun& last = out_.back();
      if (last.is_folded && last.end == run.begin && last.of_class == run.of_class &&
          last.fill == run.fill) {
        last.end = run.end;
        return;
      }
    }
    out_.push_back(run);
  }

  std::vector<PixelRun>& out_;
  size_t first_;
  Mix mix_;
  int32_t column_ = 0;
};

}  // namespace

RowLevels::RowLevels(std::vector<LevelBar> bars) {
  levels_.front().bars = std::move(bars);
  const std::vector<LevelBar>& all = levels_.front().bars;
  if (std::ssize(all) <= kFewestWindows) return;
  const Picoseconds span_ps = std::max<Picoseconds>(1, all.back().end_ps - all.front().begin_ps);
  auto window_ps = static_cast<Picoseconds>(
      std::bit_ceil(static_cast<uint64_t>(std::max<Picoseconds>(1, span_ps / std::ssize(all)))));
  for (; window_ps <= span_ps / kFewestWindows; window_ps *= 2) {
    std::vector<LevelBar> next = folded(levels_.front().bars, window_ps);
    const auto before = static_cast<double>(levels_.back().bars.size());
    if (static_cast<double>(next.size()) > kWorthKeeping * before) continue;
    next.shrink_to_fit();
    levels_.push_back({window_ps, std::move(next)});
  }
}

const RowLevels::Level& RowLevels::level_for(double column_ps) const {
  const Level* best = &levels_.front();
  for (const Level& level : levels_) {
    if (static_cast<double>(level.window_ps) <= column_ps) best = &level;
  }
  return *best;
}

void RowLevels::fold(Picoseconds from_ps, Picoseconds to_ps, int32_t columns,
                     std::vector<PixelRun>& runs) const {
  RING_ASSERT(from_ps < to_ps && columns > 0);
  // Differences of times are taken in double: the ends may be far apart.
  const double column_ps = (static_cast<double>(to_ps) - static_cast<double>(from_ps)) / columns;
  const double scale = 1 / column_ps;
  const auto origin = static_cast<double>(from_ps);
  const std::vector<LevelBar>& bars = level_for(column_ps).bars;
  auto bar = std::partition_point(bars.begin(), bars.end(),
                                  [&](const LevelBar& b) { return b.end_ps < from_ps; });
  // Bars that only end there are not seen.
  while (bar != bars.end() && bar->end_ps == from_ps && bar->begin_ps < from_ps) ++bar;
  ColumnFolder folder(runs);
  for (; bar != bars.end() && bar->begin_ps < to_ps; ++bar) {
    const auto begin_ps = static_cast<double>(bar->begin_ps),
               end_ps = static_cast<double>(bar->end_ps);
    const double begin = std::max(0.0, (begin_ps - origin) * scale);
    const double end = std::min(columns * 1.0, (end_ps - origin) * scale);
    if (!bar->is_folded && end_ps - begin_ps >= column_ps) {
      folder.add_wide(begin, end, *bar, columns);
    } else {
      folder.add_narrow(begin, end, *bar);
    }
  }
  folder.flush();
  while (!runs.empty() && runs.back().begin >= columns) runs.pop_back();
  if (!runs.empty()) runs.back().end = std::min(runs.back().end, columns);
}

std::optional<size_t> RowLevels::bar_at(Picoseconds at_ps, Picoseconds tolerance_ps) const {
  const std::vector<LevelBar>& all = levels_.front().bars;
  auto bar = std::partition_point(
      all.begin(), all.end(), [&](const LevelBar& b) { return b.end_ps < at_ps - tolerance_ps; });
  std::optional<size_t> best;
  std::pair<Picoseconds, bool> best_rank;
  for (; bar != all.end() && bar->begin_ps <= at_ps + tolerance_ps; ++bar) {
    const Picoseconds off =
        std::max({bar->begin_ps - at_ps, at_ps - bar->end_ps + 1, Picoseconds{0}});
    const bool is_inside = at_ps >= bar->begin_ps && at_ps < bar->end_ps;
    const std::pair rank(is_inside ? Picoseconds{0} : std::max<Picoseconds>(off, 1),
                         bar->of_class == kWaitClass);
    if (best && !(rank < best_rank)) {
      if (bar->begin_ps > at_ps) break;  // Later ones are farther away.
      continue;
    }
    best = static_cast<size_t>(bar - all.begin());
    best_rank = rank;
  }
  return best;
}

std::pair<size_t, size_t> RowLevels::bars_between(Picoseconds from_ps, Picoseconds to_ps) const {
  const std::vector<LevelBar>& all = levels_.front().bars;
  auto first = std::partition_point(all.begin(), all.end(),
                                    [&](const LevelBar& b) { return b.end_ps < from_ps; });
  // Bars that only end there have no part in it.
  while (first != all.end() && first->end_ps == from_ps && first->begin_ps < from_ps) ++first;
  const auto last = std::partition_point(first, all.end(), [&](const LevelBar& b) {
    return b.begin_ps < to_ps || (b.begin_ps == to_ps && b.end_ps == to_ps);
  });
  return {static_cast<size_t>(first - all.begin()), static_cast<size_t>(last - all.begin())};
}

std::optional<size_t> RowLevels::bar_of(uint32_t slice, Picoseconds start_ps) const {
  const std::vector<LevelBar>& all = levels_.front().bars;
  auto bar = std::partition_point(all.begin(), all.end(),
                                  [&](const LevelBar& b) { return b.begin_ps < start_ps; });
  for (; bar != all.end() && bar->begin_ps == start_ps; ++bar) {
    if (bar->slice == slice && bar->of_class != kWaitClass) {
      return static_cast<size_t>(bar - all.begin());
    }
  }
  return std::nullopt;
}

RowLevels row_levels(const Timeline& timeline, const TimelineRow& row) {
  std::vector<LevelBar> bars;
  bars.reserve(row.bars.size());
  for (const RowBar& bar : row.bars) {
    const BarClass of_class = bar.is_wait ? kWaitClass : bar_class(timeline.slices[bar.slice].kind);
    bars.push_back(
        {bar.begin_ps, bar.end_ps, static_cast<uint32_t>(bar.slice), of_class, 255, false});
  }
  return RowLevels(std::move(bars));
}

}  // namespace ring
