// Hatching as lines, for files that know no patterns and no clipping.
#pragma once

#include <QPainterPath>
#include <QRectF>

namespace ring::gui {

/// Strokes from lower left to upper right within the box, `step` apart; their places follow the
/// page, not the box, so that neighbours match.
void add_hatch(const QRectF& box, double step, QPainterPath& path);

}  // namespace ring::gui
