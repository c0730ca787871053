// SliceRef: names one slice of a measured or a predicted timeline that are looked at together.
#pragma once

#include <compare>
#include <cstdint>

#include "core/timeline.h"

namespace ring {

struct SliceRef {
  TimelineOrigin origin = TimelineOrigin::kMeasured;
  uint32_t slice = 0;  ///< Index into Timeline::slices.
  auto operator<=>(const SliceRef&) const = default;
};

}  // namespace ring
