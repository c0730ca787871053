// AffineRange: token positions begin, begin + stride, ... ; the piece every partition is made of.
#pragma once

#include <cstdint>
#include <vector>

namespace ring {

struct AffineRange {
  int64_t begin = 0;
  int64_t count = 0;
  int64_t stride = 1;  ///< Positive.

  int64_t position(int64_t index) const { return begin + index * stride; }
  int64_t last() const { return position(count - 1); }
  AffineRange slice(int64_t from, int64_t to) const { return {position(from), to - from, stride}; }
  bool operator==(const AffineRange&) const = default;
};

/// Ascending, disjoint ranges: the positions of a shard or of a slice of it, in local order.
using TokenRanges = std::vector<AffineRange>;

int64_t token_count(const TokenRanges& ranges);
/// Index of a token in the local order; -1 when it is not among them.
int64_t index_of(const TokenRanges& ranges, int64_t position);
/// The tokens [from, to) of the local order.
TokenRanges slice(const TokenRanges& ranges, int64_t from, int64_t to);

}  // namespace ring
