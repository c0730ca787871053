// HopClass: how two devices of one host are joined, as nvidia-smi and NCCL name it.
#pragma once

#include <string>
#include <string_view>

namespace ring {

enum class HopKind {
  kUnknown,
  kSelf,
  kNvLink,  ///< `links` bonded NVLinks.
  kXgmi,    ///< AMD's link; `links` as stated, 0 when not.
  kPix,     ///< At most one PCIe bridge.
  kPxb,     ///< Several PCIe bridges.
  kPcie,    ///< PCIe of a kind that the file does not tell.
  kPhb,     ///< Through a PCIe host bridge.
  kNode,    ///< Between host bridges of one NUMA node.
  kSys,     ///< Between NUMA nodes.
};

struct HopClass {
  HopKind kind = HopKind::kUnknown;
  int links = 0;
  bool operator==(const HopClass&) const = default;
  /// "NV4", "PIX", ...
  std::string text() const;
};

}  // namespace ring
