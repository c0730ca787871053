// Partition: which token positions each rank holds.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/affine_range.h"

namespace ring {

/// Shards are ascending and disjoint and cover [0, seq_len). Any length goes over any number of
/// ranks; a rank may hold no token.
class Partition {
 public:
  /// Lengths differ by at most one, the longer shards first.
  static Partition contiguous(int64_t seq_len, int ranks);
  /// ceil(S / P) tokens each, and what is left over for the last ranks.
  static Partition shorter_last(int64_t seq_len, int ranks);
  /// 2P chunks of ceil(S / 2P) tokens, the last ones shorter or empty; rank r holds chunks r and
  /// 2P - 1 - r (also called head-tail).
  static Partition zigzag(int64_t seq_len, int ranks);
  /// Stripes of `width` tokens dealt in turn.
  static Partition striped(int64_t seq_len, int ranks, int64_t width = 1);
  /// Contiguous shards of the given lengths, in rank order.
  static Partition uneven(const std::vector<int64_t>& lengths);
  /// Any ascending ranges per rank; throws Error(kUsage) unless they cover [0, seq_len) once.
  static Partition from_ranges(std::string text, int64_t seq_len, std::vector<TokenRanges> shards);

  /// "contiguous", "shorter-last", "zigzag", "striped:16", "uneven:5,3"; throws Error(kUsage).
  /// Those that depend on the mask are made by mask_partition.h.
  static Partition parse(std::string_view text, int64_t seq_len, int ranks);
  const std::string& text() const { return text_; }

  int ranks() const { return static_cast<int>(shards_.size()); }
  int64_t seq_len() const { return seq_len_; }
  const TokenRanges& shard(int rank) const { return shards_[static_cast<size_t>(rank)]; }
  int64_t shard_tokens(int rank) const { return tokens_[static_cast<size_t>(rank)]; }
  int64_t longest_shard_tokens() const;

 private:
  Partition(std::string text, int64_t seq_len, std::vector<TokenRanges> shards);

  std::string text_;
  int64_t seq_len_ = 0;
  std::vector<TokenRanges> shards_;
  std::vector<int64_t> tokens_;
};

}  // namespace ring
