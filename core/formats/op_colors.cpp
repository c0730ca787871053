#include "core/formats/op_colors.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

namespace ring {

std::string_view color_of(OpKind kind) {
  switch (kind) {
    case OpKind::kAttend:
    case OpKind::kCompute:
      return "#0072B2";
    case OpKind::kSend:
      return "#E69F00";
    case OpKind::kReceive:
      return "#009E73";
    case OpKind::kMerge:
      return "#56B4E9";
    case OpKind::kCopy:
      return "#CC79A7";
    case OpKind::kFinalize:
      return "#F0E442";
    case OpKind::kBackward:
      return "#332288";
    case OpKind::kDelta:
      return "#AA4499";
    case OpKind::kAdd:
      return "#88CCEE";
  }
  return kWaitColor;
}

std::string mixed(std::string_view color, double share) {
  const double target = share > 0 ? 255 : 0;
  std::string out = "#";
  for (size_t at = 1; at < 7; at += 2) {
    int channel = 0;
    std::from_chars(color.data() + at, color.data() + at + 2, channel, 16);
    const double value = channel + (target - channel) * std::abs(share);
    out += fmt::format("{:02X}", static_cast<int>(std::lround(value)));
  }
  return out;
}

}  // namespace ring
