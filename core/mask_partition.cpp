#include "core/mask_partition.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

#include "core/error.h"

namespace ring {
namespace {

/// Ascending bounds of the documents, from 0 to the length.
std::vector<int64_t> document_bounds(const Mask& mask) {
  std::vector<int64_t> bounds{0};
  for (const MaskSegment& segment : mask.segments()) {
    if (segment.q_begin == segment.q_end) continue;
    const bool begins_here = segment.begin_slope == 0 && segment.begin_base >= segment.q_begin;
    const bool ends_here =
        segment.end_slope == 0 ? segment.end_base <= segment.q_end : segment.end_base <= 1;
    if (!begins_here || !ends_here) return {0, mask.seq_len()};
    for (const int64_t bound : {segment.q_begin, segment.q_end}) {
      if (bound > bounds.back()) bounds.push_back(bound);
    }
  }
  if (bounds.back() < mask.seq_len()) bounds.push_back(mask.seq_len());
  return bounds;
}

std::vector<double> parse_speeds(std::string_view list) {
  std::vector<double> speeds;
  while (true) {
    const std::string_view text = list.substr(0, list.find(','));
    double value = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
    if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) {
      throw_usage(fmt::format("speed '{}' is not a number", text),
                  "write one number per rank, for example balanced:1,0.5,1");
    }
    speeds.push_back(value);
    if (text.size() == list.size()) return speeds;
    list.remove_prefix(text.size() + 1);
  }
}

}  // namespace

Partition document_zigzag(const Mask& mask, int ranks) {
  std::vector<TokenRanges> shards(static_cast<size_t>(ranks));
  const std::vector<int64_t> bounds = document_bounds(mask);
  for (size_t i = 0; i + 1 < bounds.size(); ++i) {
    const Partition document = Partition::zigzag(bounds[i + 1] - bounds[i], ranks);
    for (int rank = 0; rank < ranks; ++rank) {
      for (AffineRange range : document.shard(rank)) {
        range.begin += bounds[i];
        shards[static_cast<size_t>(rank)].push_back(range);
      }
    }
  }
  return Partition::from_ranges("doc-zigzag", mask.seq_len(), std::move(shards));
}

Partition balanced(const Mask& mask, int ranks, std::span<const double> speeds) {
  std::string text = "balanced";
  std::vector<double> share(static_cast<size_t>(ranks), 1);
  if (!speeds.empty()) {
    if (static_cast<int>(speeds.size()) != ranks) {
      throw_usage(fmt::format("{} speeds are given for {} ranks", speeds.size(), ranks),
                  "give one speed per rank");
    }
    share.assign(speeds.begin(), speeds.end());
    for (const double speed : share) {
      if (!(speed > 0) || !std::isfinite(speed))
        throw_usage(fmt::format("the speed {} of a rank is not positive", speed));
    }
    text = fmt::format("balanced:{}", fmt::join(share, ","));
  }
  const int64_t seq_len = mask.seq_len();
  const TokenRanges keys{{0, seq_len, 1}};
  const auto pairs_below = [&](int64_t position) {
    return mask.count_visible({{0, position, 1}}, keys);
  };
  const int64_t all = pairs_below(seq_len);
  // A mask that shows nothing costs nothing anywhere: then tokens are dealt out.
  const auto cost_below = [&](int64_t position) {
    return static_cast<double>(all > 0 ? pairs_below(position) : position);
  };
  const double speed_sum = std::accumulate(share.begin(), share.end(), 0.0);
  std::vector<TokenRanges> shards(static_cast<size_t>(ranks));
  double speed_below = 0;
  int64_t begin = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    speed_below += share[static_cast<size_t>(rank)];
    const double wanted = cost_below(seq_len) * speed_below / speed_sum;
    int64_t low = begin, high = seq_len;
    while (low < high) {  // The first position below which the wanted cost lies.
      const int64_t middle = low + (high - low) / 2;
      if (cost_below(middle) < wanted) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    int64_t end = rank + 1 == ranks ? seq_len : low;
    if (rank + 1 < ranks && end > begin &&
        wanted - cost_below(end - 1) < cost_below(end) - wanted) {
      --end;
    }
    if (end > begin) shards[static_cast<size_t>(rank)].push_back({begin, end - begin, 1});
    begin = end;
  }
  return Partition::from_ranges(std::move(text), seq_len, std::move(shards));
}

bool is_made_for_mask(std::string_view text) {
  const std::string_view kind = text.substr(0, text.find(':'));
  return kind == "doc-zigzag" || kind == "balanced";
}

Partition make_partition(std::string_view text, const Mask& mask, int ranks) {
  if (ranks < 1) throw_usage(fmt::format("ranks is {}; it must be at least 1", ranks));
  if (text == "doc-zigzag") return document_zigzag(mask, ranks);
  if (text == "balanced") return balanced(mask, ranks);
  if (text.starts_with("balanced:")) {
    return balanced(mask, ranks, parse_speeds(text.substr(text.find(':') + 1)));
  }
  return Partition::parse(text, mask.seq_len(), ranks);
}

}  // namespace ring
