#include "core/mask.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/count_list.h"
#include "core/error.h"
#include "core/integer_math.h"
#include "core/mask_mix.h"
#include "core/units.h"

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

/// The pairs of longer sequences cannot be counted in 64 bits.
constexpr int64_t kMostTokens = int64_t{1} << 31;
constexpr int64_t kMostChunks = int64_t{1} << 24;

void require_length(int64_t seq_len) {
  if (seq_len < 0 || seq_len > kMostTokens) {
    throw_usage(fmt::format("the sequence length is {}; it must be 0 to {}", seq_len, kMostTokens));
  }
}

void require_bounds(const std::vector<int64_t>& bounds, std::string_view what) {
  if (bounds.size() < 2 || bounds.front() != 0 || !std::is_sorted(bounds.begin(), bounds.end())) {
    throw_usage(fmt::format("{} bounds '{}' do not ascend from 0", what, fmt::join(bounds, ",")),
                "give cumulative lengths, for example 0,9,17");
  }
  require_length(bounds.back());
}

std::vector<int64_t> parse_bounds(std::string_view list, int64_t seq_len, std::string_view what) {
  std::vector<int64_t> bounds = parse_count_list(list, what);
  if (bounds.back() != seq_len) {
    throw_usage(fmt::format("the last {} bound is {}, but the sequence has {} tokens", what,
                            bounds.back(), seq_len));
  }
  return bounds;
}

}  // namespace

Mask::Mask(std::string kind, std::string text, int64_t seq_len, std::vector<MaskSegment> segments)
    : kind_(std::move(kind)),
      text_(std::move(text)),
      seq_len_(seq_len),
      segments_(std::move(segments)) {}

Mask Mask::full(int64_t seq_len) {
  require_length(seq_len);
  return {"full", "full", seq_len, {{0, seq_len, 0, 0, seq_len, 0}}};
}

Mask Mask::causal(int64_t seq_len) {
  require_length(seq_len);
  return {"causal", "causal", seq_len, {{0, seq_len, 0, 0, 1, 1}}};
}

Mask Mask::sliding_window(int64_t seq_len, int64_t window) {
  require_length(seq_len);
  if (window < 1) throw_usage(fmt::format("the window is {}; it must be at least 1", window));
  const int64_t ramp = std::min(window, seq_len);  // Queries whose window begins at key 0.
  return {"window",
          fmt::format("window:{}", window),
          seq_len,
          {{0, ramp, 0, 0, 1, 1}, {ramp, seq_len, 1 - window, 1, 1, 1}}};
}

Mask Mask::chunked(int64_t seq_len, int64_t chunk) {
  require_length(seq_len);
  if (chunk < 1) throw_usage(fmt::format("the chunk is {}; it must be at least 1", chunk));
  if (seq_len / chunk > kMostChunks) {
    throw_usage(
        fmt::format("chunks of {} cut {} tokens into more than {}", chunk, seq_len, kMostChunks),
        "choose larger chunks");
  }
  std::vector<MaskSegment> segments;
  for (int64_t begin = 0; begin < seq_len; begin += chunk) {
    segments.push_back({begin, std::min(begin + chunk, seq_len), begin, 0, 1, 1});
  }
  return {"chunked", fmt::format("chunked:{}", chunk), seq_len, std::move(segments)};
}

Mask Mask::documents(std::vector<int64_t> cu_seqlens, bool is_causal) {
  require_bounds(cu_seqlens, "document");
  std::vector<MaskSegment> segments;
  for (size_t i = 0; i + 1 < cu_seqlens.size(); ++i) {
    const int64_t begin = cu_seqlens[i], end = cu_seqlens[i + 1];
    if (begin == end) continue;
    if (is_causal) {
      segments.push_back({begin, end, begin, 0, 1, 1});
    } else {
      segments.push_back({begin, end, begin, 0, end, 0});
    }
  }
  const std::string kind = is_causal ? "docs" : "docs-full";
  return {kind, fmt::format("{}:{}", kind, fmt::join(cu_seqlens, ",")), cu_seqlens.back(),
          std::move(segments)};
}

Mask Mask::prefix_lm(int64_t seq_len, int64_t prefix) {
  require_length(seq_len);
  if (prefix < 0 || prefix > seq_len) {
    throw_usage(fmt::format("the prefix is {}; it must be 0 to {}", prefix, seq_len));
  }
  return {"prefix",
          fmt::format("prefix:{}", prefix),
          seq_len,
          {{0, prefix, 0, 0, prefix, 0}, {prefix, seq_len, 0, 0, 1, 1}}};
}

Mask Mask::block_causal(std::vector<int64_t> bounds) {
  require_bounds(bounds, "group");
  std::vector<MaskSegment> segments;
  for (size_t i = 0; i + 1 < bounds.size(); ++i) {
    if (bounds[i] < bounds[i + 1])
      segments.push_back({bounds[i], bounds[i + 1], 0, 0, bounds[i + 1], 0});
  }
  return {"groups", fmt::format("groups:{}", fmt::join(bounds, ",")), bounds.back(),
          std::move(segments)};
}

Mask Mask::decode(int64_t seq_len, int64_t tokens) {
  require_length(seq_len);
  if (tokens < 1 || tokens > seq_len) {
    throw_usage(
        fmt::format("decode:{}: of {} tokens 1 to {} can be decoded", tokens, seq_len, seq_len));
  }
  return {"decode",
          fmt::format("decode:{}", tokens),
          seq_len,
          {{seq_len - tokens, seq_len, 0, 0, 1, 1}}};
}

Mask Mask::from_segments(int64_t seq_len, std::vector<MaskSegment> segments) {
  require_length(seq_len);
  int64_t end = 0;
  for (const MaskSegment& segment : segments) {
    const auto is_slope = [](int64_t slope) { return slope == 0 || slope == 1; };
    if (segment.q_begin < end || segment.q_end < segment.q_begin || segment.q_end > seq_len ||
        !is_slope(segment.begin_slope) || !is_slope(segment.end_slope)) {
      throw_usage(
          fmt::format("the mask segment of queries {} to {} is out of order or of a wrong "
                      "slope",
                      segment.q_begin, segment.q_end));
    }
    end = segment.q_end;
  }
  return {"segments", "segments", seq_len, std::move(segments)};
}

Mask Mask::parse(std::string_view text, int64_t seq_len) {
  const size_t colon = text.find(':');
  const std::string_view kind = text.substr(0, colon);
  if (text == "full") return full(seq_len);
  if (text == "causal") return causal(seq_len);
  if (colon != std::string_view::npos) {
    const std::string_view value = text.substr(colon + 1);
    if (kind == "window") return sliding_window(seq_len, parse_count(value, "window"));
    if (kind == "chunked") return chunked(seq_len, parse_count(value, "chunk"));
    if (kind == "prefix") return prefix_lm(seq_len, parse_count(value, "prefix"));
    if (kind == "decode") return decode(seq_len, parse_count(value, "decoded tokens"));
    if (kind == "docs") return documents(parse_bounds(value, seq_len, "document"), true);
    if (kind == "docs-full") return documents(parse_bounds(value, seq_len, "document"), false);
    if (kind == "groups") return block_causal(parse_bounds(value, seq_len, "group"));
    if (kind == "mix") return mix(seq_len, parse_mix(value));
  }
  static constexpr std::string_view kKinds[] = {"full", "causal",    "window", "chunked",
                                                "docs", "docs-full", "prefix", "groups",
                                                "mix",  "decode"};
  const std::string nearest = nearest_spelling(kind, kKinds, std::size(kKinds));
  throw_usage(
      fmt::format("mask '{}' is not known", text),
      "allowed: full, causal, window:N, chunked:N, docs:0,N,..., docs-full:0,N,..., "
      "prefix:N, groups:0,N,..., decode:N, mix:text=N,frames=KxN,new,..." +
          (nearest.empty() || nearest == text ? std::string() : "; did you mean " + nearest + "?"));
}

std::string Mask::text() const { return text_; }

KeyInterval Mask::visible(int64_t position) const {
  const auto segment = std::partition_point(
      segments_.begin(), segments_.end(),
      [position](const MaskSegment& candidate) { return candidate.q_end <= position; });
  if (segment == segments_.end() || position < segment->q_begin) return {};
  return {std::max(segment->begin_base + segment->begin_slope * position, int64_t{0}),
          std::min(segment->end_base + segment->end_slope * position, seq_len_)};
}

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
