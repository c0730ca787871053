// The field and enum numbers of Chakra's et_def.proto that are used here.
#pragma once

#include <cstdint>

#include "core/units.h"

namespace ring::chakra {

inline constexpr int kMetadataVersion = 1;

inline constexpr int kNodeId = 1, kNodeName = 2, kNodeType = 3, kNodeControlDeps = 4,
                     kNodeDataDeps = 5, kNodeDurationMicros = 7, kNodeAttribute = 10;

inline constexpr int kAttributeName = 1;
inline constexpr int kAttributeInt32 = 7, kAttributeInt64 = 9, kAttributeUint32 = 11,
                     kAttributeUint64 = 13, kAttributeBool = 27, kAttributeString = 29;

inline constexpr Picoseconds kMicrosecond = 1'000'000;  ///< Durations of nodes are whole ones.

enum NodeType : uint64_t {
  kInvalidNode = 0,
  kMetadataNode = 1,
  kComputeNode = 4,
  kSendNode = 5,
  kReceiveNode = 6,
};

}  // namespace ring::chakra
