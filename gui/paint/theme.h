// Theme: the colours of everything drawn, light and dark; op kinds keep their colours in both.
#pragma once

#include <QColor>
#include <string_view>

#include "core/ring_program.h"

namespace ring::gui {

enum class Theme { kLight, kDark };

/// Colours of surfaces, lines and text.
struct ThemeColors {
  QColor background;  ///< Behind bars.
  QColor band;        ///< Behind every second rank, and behind labels.
  QColor panel;       ///< Ruler, minimap, header.
  QColor grid;
  QColor separator;
  QColor text;
  QColor faint;   ///< Secondary text.
  QColor accent;  ///< Selection, focus, cursor.
  QColor mark;
  QColor hit;      ///< Search hits.
  QColor counter;  ///< Link counters.
  QColor memory;
  bool has_dark_edges = true;  ///< Bars have a darker edge.
};

ThemeColors colors_of(Theme theme);

/// "#RRGGBB" to a colour.
QColor color_of_hex(std::string_view hex);
QColor op_color(OpKind kind);
QColor wait_color();
QColor critical_color();
/// `share` of `over` and the rest of `under`.
QColor blended(const QColor& under, const QColor& over, double share);
/// Black or white, whichever is easier to read on the colour.
QColor readable_on(const QColor& color);

}  // namespace ring::gui
