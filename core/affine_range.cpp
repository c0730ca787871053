#include "core/affine_range.h"

#include <algorithm>

namespace ring {

int64_t token_count(const TokenRanges& ranges) {
  int64_t count = 0;
  for (const AffineRange& range : ranges) count += range.count;
  return count;
}

int64_t index_of(const TokenRanges& ranges, int64_t position) {
  int64_t first = 0;
  for (const AffineRange& range : ranges) {
    const int64_t offset = position - range.begin;
    if (offset >= 0 && offset % range.stride == 0 && offset / range.stride < range.count) {
      return first + offset / range.stride;
    }
    first += range.count;
  }
  return -1;
}

TokenRanges slice(const TokenRanges& ranges, int64_t from, int64_t to) {
  TokenRanges result;
  int64_t first = 0;  // Local index of the first token of the range at hand.
  for (const AffineRange& range : ranges) {
    const int64_t low = std::max(from - first, int64_t{0});
    const int64_t high = std::min(to - first, range.count);
    if (low < high) result.push_back(range.slice(low, high));
    first += range.count;
    if (first >= to) break;
  }
  return result;
}

}  // namespace ring
