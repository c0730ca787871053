#include "core/mask.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/count_list.h"
#include "core/error.h"
#include "core/mask_mix.h"
#include "core/units.h"

namespace ring {
namespace {

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
                            bounds.back(), seq_len),
                fmt::format("end the bounds with {}, or set the sequence length to {}", seq_len,
                            bounds.back()));
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
  if (window < 1) {
    throw_usage(fmt::format("the window is {}; it must be at least 1", window),
                "nearest legal: --mask window:1");
  }
  const int64_t ramp = std::min(window, seq_len);  // Queries whose window begins at key 0.
  return {"window",
          fmt::format("window:{}", window),
          seq_len,
          {{0, ramp, 0, 0, 1, 1}, {ramp, seq_len, 1 - window, 1, 1, 1}}};
}

Mask Mask::chunked(int64_t seq_len, int64_t chunk) {
  require_length(seq_len);
  if (chunk < 1) {
    throw_usage(fmt::format("the chunk is {}; it must be at least 1", chunk),
                "nearest legal: --mask chunked:1");
  }
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
    throw_usage(fmt::format("the prefix is {}; it must be 0 to {}", prefix, seq_len),
                fmt::format("nearest legal: --mask prefix:{}", prefix < 0 ? 0 : seq_len));
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
        fmt::format("decode:{}: of {} tokens 1 to {} can be decoded", tokens, seq_len, seq_len),
        fmt::format("nearest legal: --mask decode:{}", tokens < 1 ? 1 : seq_len));
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

}  // namespace ring
