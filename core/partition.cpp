#include "core/partition.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/count_list.h"
#include "core/error.h"
#include "core/units.h"

namespace ring {
namespace {

void require_ranks(int ranks) {
  if (ranks < 1) throw_usage(fmt::format("ranks is {}; it must be at least 1", ranks));
}

void append(TokenRanges& shard, int64_t begin, int64_t end) {
  if (begin >= end) return;
  if (!shard.empty() && shard.back().stride == 1 &&
      shard.back().begin + shard.back().count == begin) {
    shard.back().count += end - begin;
  } else {
    shard.push_back({begin, end - begin, 1});
  }
}

}  // namespace

Partition::Partition(std::string text, int64_t seq_len, std::vector<TokenRanges> shards)
    : text_(std::move(text)), seq_len_(seq_len), shards_(std::move(shards)) {
  for (const TokenRanges& shard : shards_) tokens_.push_back(token_count(shard));
}

Partition Partition::contiguous(int64_t seq_len, int ranks) {
  require_ranks(ranks);
  std::vector<TokenRanges> shards(static_cast<size_t>(ranks));
  const int64_t base = seq_len / ranks, longer = seq_len % ranks;
  int64_t begin = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    const int64_t end = begin + base + (rank < longer ? 1 : 0);
    append(shards[static_cast<size_t>(rank)], begin, end);
    begin = end;
  }
  return {"contiguous", seq_len, std::move(shards)};
}

Partition Partition::shorter_last(int64_t seq_len, int ranks) {
  require_ranks(ranks);
  std::vector<TokenRanges> shards(static_cast<size_t>(ranks));
  const int64_t tokens = (seq_len + ranks - 1) / ranks;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    append(shards[static_cast<size_t>(rank)], std::min(rank * tokens, seq_len),
           std::min((rank + 1) * tokens, seq_len));
  }
  return {"shorter-last", seq_len, std::move(shards)};
}

Partition Partition::zigzag(int64_t seq_len, int ranks) {
  require_ranks(ranks);
  std::vector<TokenRanges> shards(static_cast<size_t>(ranks));
  const int64_t chunks = int64_t{2} * ranks;
  const int64_t chunk = (seq_len + chunks - 1) / chunks;
  for (int64_t i = 0; i < chunks; ++i) {
    const int64_t rank = std::min(i, chunks - 1 - i);
    append(shards[static_cast<size_t>(rank)], std::min(i * chunk, seq_len),
           std::min((i + 1) * chunk, seq_len));
  }
  return {"zigzag", seq_len, std::move(shards)};
}

Partition Partition::striped(int64_t seq_len, int ranks, int64_t width) {
  require_ranks(ranks);
  if (width < 1) throw_usage(fmt::format("stripe width is {}; it must be at least 1", width));
  std::vector<TokenRanges> shards(static_cast<size_t>(ranks));
  if (width == 1) {
    for (int rank = 0; rank < ranks; ++rank) {
      const int64_t count = (seq_len - rank + ranks - 1) / ranks;
      if (count > 0) shards[static_cast<size_t>(rank)].push_back({rank, count, ranks});
    }
    return {"striped", seq_len, std::move(shards)};
  }
  for (int64_t begin = 0, stripe = 0; begin < seq_len; begin += width, ++stripe) {
    append(shards[static_cast<size_t>(stripe % ranks)], begin, std::min(begin + width, seq_len));
  }
  return {fmt::format("striped:{}", width), seq_len, std::move(shards)};
}

Partition Partition::uneven(const std::vector<int64_t>& lengths) {
  require_ranks(static_cast<int>(lengths.size()));
  std::vector<TokenRanges> shards(lengths.size());
  int64_t begin = 0;
  for (size_t rank = 0; rank < lengths.size(); ++rank) {
    if (lengths[rank] < 0) {
      throw_usage(fmt::format("shard {} has {} tokens; it must be 0 or more", rank, lengths[rank]));
    }
    const int64_t end = checked_add(begin, lengths[rank], "the sum of shard lengths");
    append(shards[rank], begin, end);
    begin = end;
  }
  return {fmt::format("uneven:{}", fmt::join(lengths, ",")), begin, std::move(shards)};
}

Partition Partition::from_ranges(std::string text, int64_t seq_len,
                                 std::vector<TokenRanges> shards) {
  require_ranks(static_cast<int>(shards.size()));
  std::vector<bool> is_held(static_cast<size_t>(seq_len), false);
  int64_t held = 0;
  for (size_t rank = 0; rank < shards.size(); ++rank) {
    int64_t last = -1;
    for (const AffineRange& range : shards[rank]) {
      for (int64_t i = 0; i < range.count; ++i) {
        const int64_t position = range.position(i);
        if (position <= last || position >= seq_len || is_held[static_cast<size_t>(position)]) {
          throw_usage(
              fmt::format("partition '{}': rank {} holds token {} out of order, beyond {} "
                          "or held by another rank",
                          text, rank, position, seq_len));
        }
        is_held[static_cast<size_t>(position)] = true;
        last = position;
        ++held;
      }
    }
  }
  if (held != seq_len) {
    throw_usage(fmt::format("partition '{}' holds {} of {} tokens", text, held, seq_len));
  }
  return {std::move(text), seq_len, std::move(shards)};
}

Partition Partition::parse(std::string_view text, int64_t seq_len, int ranks) {
  const size_t colon = text.find(':');
  const std::string_view kind = text.substr(0, colon);
  const bool has_value = colon != std::string_view::npos;
  const std::string_view value = has_value ? text.substr(colon + 1) : std::string_view();
  if (text == "contiguous") return contiguous(seq_len, ranks);
  if (text == "shorter-last") return shorter_last(seq_len, ranks);
  if (text == "zigzag") return zigzag(seq_len, ranks);
  if (kind == "striped") {
    return striped(seq_len, ranks, has_value ? parse_count(value, "stripe width") : 1);
  }
  if (kind == "uneven" && has_value) {
    const std::vector<int64_t> lengths = parse_count_list(value, "shard length");
    Partition partition = uneven(lengths);
    if (partition.ranks() != ranks || partition.seq_len() != seq_len) {
      throw_usage(fmt::format("partition '{}' is of {} tokens over {} ranks, but there are {} "
                              "tokens and {} ranks",
                              text, partition.seq_len(), partition.ranks(), seq_len, ranks),
                  "give one length per rank, adding up to the sequence length");
    }
    return partition;
  }
  static constexpr std::string_view kKinds[] = {"contiguous", "shorter-last", "zigzag",  "striped",
                                                "uneven",     "doc-zigzag",   "balanced"};
  const std::string nearest = nearest_spelling(kind, kKinds, 7);
  throw_usage(fmt::format("partition '{}' is not known", text),
              "allowed: contiguous, shorter-last, zigzag, doc-zigzag, striped, striped:WIDTH, "
              "balanced, balanced:SPEED0,SPEED1,..., uneven:N0,N1,..." +
                  (nearest.empty() ? std::string() : "; did you mean " + nearest + "?"));
}

int64_t Partition::longest_shard_tokens() const {
  return *std::max_element(tokens_.begin(), tokens_.end());
}

}  // namespace ring
