#include "gui/paint/hatch.h"

#include <algorithm>
#include <cmath>

namespace ring::gui {

void add_hatch(const QRectF& box, double step, QPainterPath& path) {
  const double low = box.left() + box.top(), high = box.right() + box.bottom();
  for (double sum = std::ceil(low / step) * step; sum < high; sum += step) {
    const double left = std::max(box.left(), sum - box.bottom());
    const double right = std::min(box.right(), sum - box.top());
    if (right <= left) continue;
    path.moveTo(left, sum - left);
    path.lineTo(right, sum - right);
  }
}

}  // namespace ring::gui
