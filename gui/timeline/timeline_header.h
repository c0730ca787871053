// TimelineHeader: what the line above the picture says of the runs, and what the colours mean.
#pragma once

#include <QColor>
#include <QFont>
#include <QFontMetricsF>
#include <QString>
#include <vector>

#include "gui/paint/theme.h"
#include "gui/timeline/timeline_layout.h"

namespace ring::gui {

struct LegendEntry {
  QString label;
  QColor color;
  enum Look { kSolid, kWait, kHatched, kFrame } look = kSolid;
};

/// Measures of the header, in units of the widget.
inline constexpr double kHeaderPad = 8, kSwatchGap = 5, kEntryGap = 14;

/// "measured 246 ms   predicted 176 ms   prediction off by -28.3 %".
QString header_text(const TimelineModel& model);
/// Of what the mode shows.
std::vector<LegendEntry> legend_of(const TimelineModel& model, LayoutMode mode,
                                   const ThemeColors& colors);
double swatch_width(const QFontMetricsF& metrics);
/// Width of an entry without the gap after it.
double entry_width(const LegendEntry& entry, const QFontMetricsF& metrics);

/// How many lines the header needs in a view of that width, with a scroll bar or without: one where
/// the legend has room beside the text, else the legend stands below it.
int header_lines(const TimelineModel* model, LayoutMode mode, const QFont& font, int width);

}  // namespace ring::gui
