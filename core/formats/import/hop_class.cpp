#include "core/formats/import/hop_class.h"

namespace ring {

std::string HopClass::text() const {
  switch (kind) {
    case HopKind::kUnknown:
      return "?";
    case HopKind::kSelf:
      return "X";
    case HopKind::kNvLink:
      return "NV" + std::to_string(links);
    case HopKind::kXgmi:
      return links > 0 ? "XGMI" + std::to_string(links) : "XGMI";
    case HopKind::kPix:
      return "PIX";
    case HopKind::kPxb:
      return "PXB";
    case HopKind::kPcie:
      return "PCIE";
    case HopKind::kPhb:
      return "PHB";
    case HopKind::kNode:
      return "NODE";
    case HopKind::kSys:
      return "SYS";
  }
  return "?";
}

}  // namespace ring
