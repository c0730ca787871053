// Mask: which keys a query sees, as one interval of key positions per query.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/affine_range.h"

namespace ring {

/// Half-open interval of key positions or of key indices; empty when begin >= end.
struct KeyInterval {
  int64_t begin = 0;
  int64_t end = 0;
  bool operator==(const KeyInterval&) const = default;
};

/// Queries [q_begin, q_end) see keys [begin_base + begin_slope * q, end_base + end_slope * q).
/// Slopes are 0 or 1.
struct MaskSegment {
  int64_t q_begin = 0, q_end = 0;
  int64_t begin_base = 0, begin_slope = 0;
  int64_t end_base = 0, end_slope = 0;
};

/// What the rectangle of a block of keys holds, per head.
struct BlockCounts {
  int64_t visible_pairs = 0;  ///< Exact visible (query, key) pairs.
  int64_t active_rows = 0;    ///< Queries that see at least one of the keys.
  int64_t edge_rows = 0;      ///< Active queries that do not see all of the keys.
};

/// One piece of a sequence that mixes text and video.
struct MixPart {
  enum class Kind {
    kText,         ///< Causal.
    kFrames,       ///< Full inside a frame, causal across frames.
    kNewDocument,  ///< What follows does not see what stands before; has no tokens.
  };
  Kind kind = Kind::kText;
  int64_t tokens = 0;             ///< Of the text, or of one frame.
  int64_t frames = 1;             ///< Frames in a row.
  int64_t before = 0, after = 0;  ///< Boundary tokens at each frame, causal.

  int64_t all_tokens() const;  ///< Throws Error(kUsage) beyond 64 bits.
};

/// Every mask of the field that is exact in the ring reduces to one key interval per query, whose
/// ends are constant or move with the query: full, causal, sliding window, documents, chunks,
/// prefix, frame groups. A mask is a sorted list of such segments; queries in none of them see
/// nothing.
class Mask {
 public:
  static Mask full(int64_t seq_len);
  static Mask causal(int64_t seq_len);
  /// Each query sees itself and the `window - 1` keys before it (causal).
  static Mask sliding_window(int64_t seq_len, int64_t window);
  /// Causal within chunks of `chunk` positions.
  static Mask chunked(int64_t seq_len, int64_t chunk);
  /// Documents given by ascending bounds 0 = c0 <= c1 <= ... = seq_len, attention inside each.
  static Mask documents(std::vector<int64_t> cu_seqlens, bool is_causal);
  /// The first `prefix` positions see each other in full; the rest is causal.
  static Mask prefix_lm(int64_t seq_len, int64_t prefix);
  /// Groups given by ascending bounds as in `documents`; full inside a group, causal across.
  static Mask block_causal(std::vector<int64_t> bounds);

  /// Text and video, whose tokens add up to `seq_len`.
  static Mask mix(int64_t seq_len, const std::vector<MixPart>& parts);

  /// Decoding: the last `tokens` positions see everything up to themselves; the others, whose
  /// results are known already, ask for nothing.
  static Mask decode(int64_t seq_len, int64_t tokens);

  /// Any sorted, disjoint segments; queries in none of them see nothing. Its text is "segments",
  /// which `parse` does not read. Throws Error(kUsage) for segments out of order or with slopes
  /// other than 0 and 1.
  static Mask from_segments(int64_t seq_len, std::vector<MaskSegment> segments);

  /// "causal", "window:4096", "docs:0,9,17" ... as printed by `text`; throws Error(kUsage).
  static Mask parse(std::string_view text, int64_t seq_len);
  std::string text() const;
  /// The kind alone: "full", "causal", "window", "chunked", "docs", "docs-full", "prefix",
  /// "groups", "mix", "decode", "segments".
  const std::string& kind() const { return kind_; }

  int64_t seq_len() const { return seq_len_; }
  const std::vector<MaskSegment>& segments() const { return segments_; }

  /// Key positions seen by the query at `position`, clipped to [0, seq_len).
  KeyInterval visible(int64_t position) const;
  /// Exact number of visible (query, key) pairs of the rectangle queries x keys.
  int64_t count_visible(const AffineRange& queries, const AffineRange& keys) const;
  int64_t count_visible(const TokenRanges& queries, const TokenRanges& keys) const;
  /// Exact counts of queries x keys.
  BlockCounts count_block(const TokenRanges& queries, const TokenRanges& keys) const;
  /// For each query (in local order) the interval of key *indices* (in local order) that it sees.
  /// `spans` has token_count(queries) elements. Key ranges must be ascending and disjoint.
  void fill_spans(const TokenRanges& queries, const TokenRanges& keys,
                  std::vector<KeyInterval>& spans) const;

 private:
  Mask(std::string kind, std::string text, int64_t seq_len, std::vector<MaskSegment> segments);

  /// The first segment that does not end before the queries.
  std::vector<MaskSegment>::const_iterator first_segment(const AffineRange& queries) const;

  std::string kind_;
  std::string text_;
  int64_t seq_len_ = 0;
  std::vector<MaskSegment> segments_;
};

}  // namespace ring
