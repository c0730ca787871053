#include "core/count_list.h"

#include "core/units.h"

namespace ring {

std::vector<int64_t> parse_count_list(std::string_view list, std::string_view what) {
  std::vector<int64_t> values;
  while (true) {
    const size_t comma = list.find(',');
    values.push_back(parse_count(list.substr(0, comma), what));
    if (comma == std::string_view::npos) return values;
    list.remove_prefix(comma + 1);
  }
}

}  // namespace ring
