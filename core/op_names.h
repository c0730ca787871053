// OpNames: what the ops of an imported run are called where they come from (kernels of a GPU).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/ring_program.h"

namespace ring {

struct OpNames {
  std::vector<std::string> names;             ///< Each once.
  std::vector<std::vector<int32_t>> of_rank;  ///< [rank][op]: into `names`; -1: none.

  /// Empty when the op has no name.
  std::string_view of(OpId id) const {
    const auto rank = static_cast<size_t>(id.rank), index = static_cast<size_t>(id.index);
    if (rank >= of_rank.size() || index >= of_rank[rank].size()) return {};
    const int32_t number = of_rank[rank][index];
    if (number < 0) return {};
    return names[static_cast<size_t>(number)];
  }
  bool empty() const { return names.empty(); }
  bool operator==(const OpNames&) const = default;
};

}  // namespace ring
