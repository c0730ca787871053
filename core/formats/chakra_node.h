// ChakraNode: one node of an execution trace, decoded and checked on its own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/ring_program.h"

namespace ring {

struct ChakraNode {
  int64_t id = 0;
  std::string name;
  uint64_t type = 0;
  std::vector<int64_t> deps;  ///< Control and data, as they come.
  int64_t duration_micros = 0;
  std::optional<int64_t> duration_ps, num_ops, comm_size, comm_src, comm_dst, comm_tag, lane;
  std::string protocol;
};

/// The nodes of one trace, in the order of the file. Attributes that are not needed are passed
/// over. Throws Error(kUsage) naming `what` for data that is cut short or of another kind.
std::vector<ChakraNode> decode_chakra(std::string_view trace, const std::string& what);

/// Numbers nodes so that each comes after all it depends on, the smallest id first where there is a
/// choice; returns places in `nodes`. Throws Error(kUsage) for unknown and repeated ids and cycles.
std::vector<size_t> order_chakra(const std::vector<ChakraNode>& nodes, const std::string& what);

}  // namespace ring
