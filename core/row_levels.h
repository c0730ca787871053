// RowLevels: the bars of one row at several levels of detail, so that a picture of it takes time
// for its pixels only, however many bars there are.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/formats/timeline_rows.h"
#include "core/timeline.h"

namespace ring {

/// What has a colour of its own: the kinds of ops, and waiting.
using BarClass = uint8_t;
inline constexpr BarClass kWaitClass = kOpKinds;
inline constexpr size_t kBarClasses = static_cast<size_t>(kWaitClass) + 1;

constexpr BarClass bar_class(OpKind kind) { return static_cast<BarClass>(kind); }

/// A bar, or several neighbouring short ones that are drawn as one.
struct LevelBar {
  Picoseconds begin_ps = 0, end_ps = 0;
  uint32_t slice = 0;     ///< Into Timeline::slices; the first of several.
  BarClass of_class = 0;  ///< What fills most of it.
  uint8_t fill = 255;     ///< How much of it is filled, of 255.
  bool is_folded = false;
};

/// A stretch of pixel columns of one look.
struct PixelRun {
  int32_t begin = 0, end = 0;  ///< Columns [begin, end).
  uint32_t slice = 0;          ///< The first slice in it.
  BarClass of_class = 0;
  uint8_t fill = 255;      ///< How much of the columns is filled, of 255, in steps of 17.
  bool is_folded = false;  ///< Bars narrower than a column.
};

class RowLevels {
 public:
  RowLevels() = default;
  /// Bars sorted by begin, none overlapping another (as in TimelineRow).
  explicit RowLevels(std::vector<LevelBar> bars);

  /// All bars, as they are.
  std::span<const LevelBar> bars() const { return levels_.front().bars; }
  size_t level_count() const { return levels_.size(); }

  /// Appends what [from_ps, to_ps) looks like in `columns` pixel columns: runs in order, none
  /// overlapping another. Bars of a column or more keep their extent, rounded to columns. Narrower
  /// ones share columns; a column shows what fills most of it. Takes time for the columns, plus the
  /// logarithm of the bars.
  void fold(Picoseconds from_ps, Picoseconds to_ps, int32_t columns,
            std::vector<PixelRun>& runs) const;

  /// The number of the bar at the time, else of the nearest one within `tolerance_ps`; of two bars
  /// that meet there, and of a bar without length and its neighbour, the one that works rather than
  /// waits.
  std::optional<size_t> bar_at(Picoseconds at_ps, Picoseconds tolerance_ps) const;

  /// Numbers [first, last) of the bars of which a part lies in [from_ps, to_ps]; bars without
  /// length at either end included.
  std::pair<size_t, size_t> bars_between(Picoseconds from_ps, Picoseconds to_ps) const;
  /// The number of the working bar of a slice that starts at `start_ps`.
  std::optional<size_t> bar_of(uint32_t slice, Picoseconds start_ps) const;

 private:
  struct Level {
    Picoseconds window_ps = 0;  ///< Bars shorter than this may be folded.
    std::vector<LevelBar> bars;
  };
  const Level& level_for(double column_ps) const;

  std::vector<Level> levels_{1};  ///< From all bars to the fewest.
};

/// The levels of a row of `timeline`.
RowLevels row_levels(const Timeline& timeline, const TimelineRow& row);

}  // namespace ring
