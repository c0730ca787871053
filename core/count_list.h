// A comma-separated list of counts, as masks and partitions have in their text forms.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace ring {

/// "0,9,17" or "4Ki,8Ki"; each item as parse_count reads it. Throws Error(kUsage) naming `what`.
std::vector<int64_t> parse_count_list(std::string_view list, std::string_view what);

}  // namespace ring
