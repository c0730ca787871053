// SliceQuery: what a search text asks for, as "attend kv 3 >2ms", and which slices answer it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "core/timeline.h"

namespace ring {

/// All words must hold:
///   attend, send, receive, merge, ...   the kind, by its name; one of several given
///   wait                         waited before it started
///   rank 3, r3                   of that rank; likewise lane, step, kv (shard)
///   peer 1, to 1, from 1         the other side; `to` means sends, `from` receives
///   r3:17                        that op
///   >2ms >=2ms <5us <=5us        how long it worked
/// A key and its number may also be joined by "=": kv=3.
struct SliceQuery {
  uint32_t kinds = 0;  ///< Bit set of OpKind; 0: any.
  bool has_waited = false;
  std::optional<int32_t> rank, lane, step, kv_shard, peer;
  std::optional<int64_t> op_index;
  std::optional<Picoseconds> at_least_ps, at_most_ps;

  bool matches(const Slice& slice) const;
};

/// Throws Error(kUsage) for words that mean nothing, with the nearest spelling.
SliceQuery parse_slice_query(std::string_view text);

/// Indices of the slices that answer, in their order.
std::vector<uint32_t> matching_slices(const Timeline& timeline, const SliceQuery& query);

}  // namespace ring
