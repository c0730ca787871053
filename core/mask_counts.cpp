// Counting of masks: sums over key intervals in closed form, without a loop over tokens.
#include <algorithm>

#include "core/integer_math.h"
#include "core/mask.h"

namespace ring {
namespace {

/// sum of floor((a * i + b) / m) for i in [0, n), a >= 0, b >= 0, m > 0 (Euclid-like descent).
int64_t floor_sum(int64_t n, int64_t m, int64_t a, int64_t b) {
  int64_t sum = 0;
  while (n > 0) {
    sum += (n - 1) * n / 2 * (a / m) + n * (b / m);
    a %= m;
    b %= m;
    const int64_t top = a * n + b;
    if (top < m) break;
    n = top / m;
    b = top % m;
    std::swap(a, m);
  }
  return sum;
}

/// Number of keys of the range at positions below `limit`.
int64_t keys_below(const AffineRange& keys, int64_t limit) {
  return std::clamp(ceil_div(limit - keys.begin, keys.stride), int64_t{0}, keys.count);
}

/// sum over the queries of keys_below(keys, base + slope * position), slope 0 or 1.
int64_t sum_keys_below(const AffineRange& queries, const AffineRange& keys, int64_t base,
                       int64_t slope) {
  if (queries.count <= 0 || keys.count <= 0) return 0;
  if (slope == 0) return queries.count * keys_below(keys, base);
  const int64_t offset = base + queries.begin - keys.begin;  // The limit of query 0, from key 0.
  // keys_below is 0 while offset + i * q.stride <= 0 and all keys from ceil(...) >= count on.
  const int64_t first =
      std::clamp(offset > 0 ? int64_t{0} : -offset / queries.stride + 1, int64_t{0}, queries.count);
  const int64_t all_from = (keys.count - 1) * keys.stride + 1;
  const int64_t full =
      std::clamp(ceil_div(all_from - offset, queries.stride), first, queries.count);
  // ceil(x / s) = floor((x + s - 1) / s) for x >= 0.
  const int64_t partial = floor_sum(full - first, keys.stride, queries.stride,
                                    offset + first * queries.stride + keys.stride - 1);
  return partial + (queries.count - full) * keys.count;
}

/// The part of the queries at positions in [low, high).
AffineRange clip(const AffineRange& queries, int64_t low, int64_t high) {
  const int64_t from = keys_below(queries, low), to = keys_below(queries, high);
  return to > from ? queries.slice(from, to) : AffineRange{queries.begin, 0, queries.stride};
}

/// Number of queries whose base + slope * position exceeds `threshold`; they are the last ones.
int64_t count_above(const AffineRange& queries, int64_t base, int64_t slope, int64_t threshold) {
  if (slope == 0) return base > threshold ? queries.count : 0;
  return queries.count - keys_below(queries, threshold - base + 1);
}

/// Number of queries of one segment whose interval begins at or before `begin_limit` and ends after
/// `end_limit`: the first ones meet the former, the last ones the latter.
int64_t count_spanning(const AffineRange& queries, const MaskSegment& segment, int64_t begin_limit,
                       int64_t end_limit) {
  const int64_t late = count_above(queries, segment.begin_base, segment.begin_slope, begin_limit);
  const int64_t reaching = count_above(queries, segment.end_base, segment.end_slope, end_limit);
  return std::max(reaching - late, int64_t{0});
}

}  // namespace

std::vector<MaskSegment>::const_iterator Mask::first_segment(const AffineRange& queries) const {
  return std::partition_point(
      segments_.begin(), segments_.end(),
      [&queries](const MaskSegment& candidate) { return candidate.q_end <= queries.begin; });
}

int64_t Mask::count_visible(const AffineRange& queries, const AffineRange& keys) const {
  if (queries.count <= 0 || keys.count <= 0) return 0;
  int64_t count = 0;
  auto segment = first_segment(queries);
  for (; segment != segments_.end() && segment->q_begin <= queries.last(); ++segment) {
    const AffineRange part = clip(queries, segment->q_begin, segment->q_end);
    count += sum_keys_below(part, keys, segment->end_base, segment->end_slope) -
             sum_keys_below(part, keys, segment->begin_base, segment->begin_slope);
  }
  return count;
}

int64_t Mask::count_visible(const TokenRanges& queries, const TokenRanges& keys) const {
  int64_t count = 0;
  for (const AffineRange& query_range : queries) {
    for (const AffineRange& key_range : keys) count += count_visible(query_range, key_range);
  }
  return count;
}

BlockCounts Mask::count_block(const TokenRanges& queries, const TokenRanges& keys) const {
  BlockCounts counts;
  if (token_count(keys) == 0) return counts;
  counts.visible_pairs = count_visible(queries, keys);
  const int64_t first = keys.front().begin, last = keys.back().last();
  const bool is_dense = keys.size() == 1 && keys.front().stride == 1;
  int64_t whole_rows = 0;
  for (const AffineRange& range : queries) {
    auto next = first_segment(range);
    for (; next != segments_.end() && next->q_begin <= range.last(); ++next) {
      const MaskSegment& segment = *next;
      const AffineRange part = clip(range, segment.q_begin, segment.q_end);
      if (part.count == 0) continue;
      whole_rows += count_spanning(part, segment, first, last);
      const int64_t latest_begin = segment.begin_base + segment.begin_slope * part.last();
      if (is_dense || latest_begin <= first) {
        counts.active_rows += count_spanning(part, segment, last, first);
      } else {
        for (int64_t i = 0; i < part.count; ++i) {  // The interval may lie between two keys.
          const bool sees_any = count_visible({{part.slice(i, i + 1)}}, keys) > 0;
          counts.active_rows += sees_any ? 1 : 0;
        }
      }
    }
  }
  counts.edge_rows = counts.active_rows - whole_rows;
  return counts;
}

void Mask::fill_spans(const TokenRanges& queries, const TokenRanges& keys,
                      std::vector<KeyInterval>& spans) const {
  spans.resize(static_cast<size_t>(token_count(queries)));
  const auto index_below = [&keys](int64_t limit) {
    int64_t index = 0;
    for (const AffineRange& range : keys) index += keys_below(range, limit);
    return index;
  };
  size_t row = 0;
  for (const AffineRange& range : queries) {
    for (int64_t i = 0; i < range.count; ++i, ++row) {
      const KeyInterval seen = visible(range.position(i));
      spans[row] = {index_below(seen.begin), index_below(seen.end)};
      if (spans[row].begin >= spans[row].end) spans[row] = {0, 0};
    }
  }
}

}  // namespace ring
