#include "gui/timeline/timeline_header.h"

#include <QFontMetricsF>
#include <algorithm>

#include "core/wording.h"
#include "gui/paint/text.h"

namespace ring::gui {

namespace {

constexpr int kScrollBarRoom = 20;

}  // namespace

QString header_text(const TimelineModel& model) {
  QString text;
  const auto add = [&](const ModelRun& run, const QString& which) {
    if (!text.isEmpty()) text += QStringLiteral("   ");
    text += which + QLatin1Char(' ') + qt(format_time(run.makespan_ps));
    if (!run.timeline().is_complete) text += QStringLiteral(" (incomplete)");
  };
  if (model.measured) add(*model.measured, QStringLiteral("measured"));
  if (model.predicted) add(*model.predicted, QStringLiteral("predicted"));
  if (model.measured && model.predicted && model.pairs.mismatch().empty() &&
      model.measured->makespan_ps > 0) {
    const double off = static_cast<double>(model.predicted->makespan_ps) /
                           static_cast<double>(model.measured->makespan_ps) -
                       1;
    text += QStringLiteral("   prediction off by %1").arg(qt(signed_percent(off)));
  }
  return text;
}

std::vector<LegendEntry> legend_of(const TimelineModel& model, LayoutMode mode,
                                   const ThemeColors& colors) {
  std::vector<LegendEntry> entries;
  uint32_t classes = 0;
  bool has_path = false;
  int shown = 0;
  for (const auto origin : {TimelineOrigin::kMeasured, TimelineOrigin::kPredicted}) {
    const ModelRun* run = model.run(origin);
    if (run == nullptr || !shows(mode, origin)) continue;
    classes |= run->classes;
    has_path = has_path || run->has_critical_path;
    ++shown;
  }
  for (BarClass c = 0; c < kWaitClass; ++c) {
    const auto kind = static_cast<OpKind>(c);
    if ((classes >> c & 1U) != 0) entries.push_back({qt(name(kind)), op_color(kind)});
  }
  if ((classes >> kWaitClass & 1U) != 0) {
    entries.push_back({QStringLiteral("wait"), wait_color(), LegendEntry::kWait});
  }
  if (has_path) {
    entries.push_back({QStringLiteral("critical path"), critical_color(), LegendEntry::kFrame});
  }
  if (shown > 1) entries.push_back({QStringLiteral("measured"), colors.faint});
  if (shows(mode, TimelineOrigin::kPredicted) && model.predicted) {
    entries.push_back({QStringLiteral("predicted"), colors.faint, LegendEntry::kHatched});
  }
  return entries;
}

double swatch_width(const QFontMetricsF& metrics) { return std::max(10.0, metrics.ascent() - 1); }

double entry_width(const LegendEntry& entry, const QFontMetricsF& metrics) {
  return swatch_width(metrics) + kSwatchGap + metrics.horizontalAdvance(entry.label);
}

int header_lines(const TimelineModel* model, LayoutMode mode, const QFont& font, int width) {
  if (model == nullptr) return 1;
  const QFontMetricsF metrics(font);
  const std::vector<LegendEntry> entries = legend_of(*model, mode, colors_of(Theme::kLight));
  double beside = metrics.horizontalAdvance(header_text(*model)) + 5 * kHeaderPad;
  for (const LegendEntry& entry : entries) beside += entry_width(entry, metrics) + kEntryGap;
  const double room = width - kScrollBarRoom;
  if (beside - kEntryGap <= room) return 1;
  int lines = 2;
  double x = kHeaderPad;
  for (const LegendEntry& entry : entries) {
    const double wide = entry_width(entry, metrics);
    if (x > kHeaderPad && x + wide > room - kHeaderPad) {
      ++lines;
      x = kHeaderPad;
    }
    x += wide + kEntryGap;
  }
  return lines;
}

}  // namespace ring::gui
