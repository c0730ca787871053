#include "core/mask.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <functional>

#include "core/error.h"

namespace ring {
namespace {

using Predicate = std::function<bool(int64_t q, int64_t k)>;

struct MaskCase {
  Mask mask;
  Predicate sees;
};

int64_t group_of(const std::vector<int64_t>& bounds, int64_t position) {
  int64_t group = 0;
  while (bounds[static_cast<size_t>(group) + 1] <= position) ++group;
  return group;
}

/// A random mask of the length and, written independently, what it must mean.
MaskCase any_mask(int64_t seq_len) {
  const int kind = *rc::gen::inRange(0, 7);
  const int64_t size = *rc::gen::inRange<int64_t>(1, seq_len + 2);
  std::vector<int64_t> bounds =
      *rc::gen::container<std::vector<int64_t>>(4, rc::gen::inRange<int64_t>(0, seq_len + 1));
  bounds.push_back(0);
  bounds.push_back(seq_len);
  std::sort(bounds.begin(), bounds.end());
  switch (kind) {
    case 0:
      return {Mask::full(seq_len), [](int64_t, int64_t) { return true; }};
    case 1:
      return {Mask::causal(seq_len), [](int64_t q, int64_t k) { return k <= q; }};
    case 2:
      return {Mask::sliding_window(seq_len, size),
              [=](int64_t q, int64_t k) { return k <= q && q - k < size; }};
    case 3:
      return {Mask::chunked(seq_len, size),
              [=](int64_t q, int64_t k) { return k <= q && q / size == k / size; }};
    case 4: {
      const bool is_causal = *rc::gen::arbitrary<bool>();
      return {Mask::documents(bounds, is_causal), [=](int64_t q, int64_t k) {
                return group_of(bounds, q) == group_of(bounds, k) && (!is_causal || k <= q);
              }};
    }
    case 5: {
      const int64_t prefix = std::min(size, seq_len);
      return {Mask::prefix_lm(seq_len, prefix),
              [=](int64_t q, int64_t k) { return k <= q || (q < prefix && k < prefix); }};
    }
    default:
      return {Mask::block_causal(bounds),
              [=](int64_t q, int64_t k) { return group_of(bounds, k) <= group_of(bounds, q); }};
  }
}

/// Ascending disjoint ranges within [0, seq_len).
TokenRanges any_ranges(int64_t seq_len) {
  TokenRanges ranges;
  int64_t at = 0;
  for (int i = *rc::gen::inRange(1, 4); i > 0 && at < seq_len; --i) {
    const int64_t begin = at + *rc::gen::inRange<int64_t>(0, 5);
    const int64_t stride = *rc::gen::inRange<int64_t>(1, 4);
    if (begin >= seq_len) break;
    const int64_t most = (seq_len - 1 - begin) / stride + 1;
    ranges.push_back({begin, *rc::gen::inRange<int64_t>(1, most + 1), stride});
    at = ranges.back().last() + 1;
  }
  return ranges;
}

std::vector<int64_t> positions_of(const TokenRanges& ranges) {
  std::vector<int64_t> positions;
  for (const AffineRange& range : ranges) {
    for (int64_t i = 0; i < range.count; ++i) positions.push_back(range.position(i));
  }
  return positions;
}

RC_GTEST_PROP(MaskProperty, CountsAndSpansEqualThePredicate, ()) {
  const int64_t seq_len = *rc::gen::inRange<int64_t>(1, 40);
  const MaskCase test = any_mask(seq_len);
  const TokenRanges queries = any_ranges(seq_len), keys = any_ranges(seq_len);
  const auto q_positions = positions_of(queries), k_positions = positions_of(keys);

  BlockCounts wanted;
  std::vector<KeyInterval> spans;
  test.mask.fill_spans(queries, keys, spans);
  RC_ASSERT(spans.size() == q_positions.size());
  for (size_t i = 0; i < q_positions.size(); ++i) {
    int64_t seen = 0;
    for (size_t j = 0; j < k_positions.size(); ++j) {
      const bool sees = test.sees(q_positions[i], k_positions[j]);
      const auto index = static_cast<int64_t>(j);
      RC_ASSERT(sees == (spans[i].begin <= index && index < spans[i].end));
      seen += sees ? 1 : 0;
    }
    wanted.visible_pairs += seen;
    wanted.active_rows += seen > 0 ? 1 : 0;
    wanted.edge_rows += seen > 0 && seen < static_cast<int64_t>(k_positions.size()) ? 1 : 0;
  }
  const BlockCounts counts = test.mask.count_block(queries, keys);
  RC_ASSERT(counts.visible_pairs == wanted.visible_pairs);
  RC_ASSERT(counts.active_rows == wanted.active_rows);
  RC_ASSERT(counts.edge_rows == wanted.edge_rows);
}

RC_GTEST_PROP(MaskProperty, TextReadsBack, ()) {
  const int64_t seq_len = *rc::gen::inRange<int64_t>(1, 60);
  const Mask mask = any_mask(seq_len).mask;
  const Mask again = Mask::parse(mask.text(), seq_len);
  for (int64_t q = 0; q < seq_len; ++q) RC_ASSERT(again.visible(q) == mask.visible(q));
}

// Text, two frames of 3 with a boundary token before and two behind each, text of a new document.
TEST(Mask, MixesOfTextAndVideo) {
  const Mask mask = Mask::parse("mix:text=2,frames=2x3+1+2,new,text=2", 16);
  const KeyInterval wanted[] = {{0, 1},   {0, 2},                                       // text
                                {0, 3},   {0, 6},  {0, 6},  {0, 6},  {0, 7},  {0, 8},   // frame 0
                                {0, 9},   {0, 12}, {0, 12}, {0, 12}, {0, 13}, {0, 14},  // frame 1
                                {14, 15}, {14, 16}};
  for (int64_t q = 0; q < 16; ++q) EXPECT_EQ(mask.visible(q), wanted[q]) << q;
  EXPECT_EQ(mask.text(), "mix:text=2,frames=2x3+1+2,new,text=2");
  EXPECT_EQ(mask.kind(), "mix");
  EXPECT_EQ(Mask::parse("mix:text=2,text=3", 5).segments().size(), 1U) << "all causal";
  EXPECT_EQ(Mask::parse("mix:frames=1000x0,text=1", 1).text(), "mix:frames=1000x0,text=1");
  EXPECT_THROW(Mask::parse("mix:frames=2147483648x1", int64_t{1} << 31), Error)
      << "a frame is a segment in memory";
}

RC_GTEST_PROP(MaskProperty, MixesEqualThePredicate, ()) {
  std::string text = "mix:";
  std::vector<int64_t> document, frame_end;  // By token; the end of its frame, or itself.
  int64_t first = 0;
  const auto token = [&](int64_t end) {
    document.push_back(first);
    frame_end.push_back(end);
  };
  const auto now = [&] { return static_cast<int64_t>(document.size()); };
  for (int i = *rc::gen::inRange(1, 6); i > 0; --i) {
    if (i > 1) {
      const int tokens = *rc::gen::inRange(0, 6);
      text += fmt::format("text={},", tokens);
      for (int k = 0; k < tokens; ++k) token(now());
    }
    if (*rc::gen::arbitrary<bool>()) {
      text += "new,";
      first = now();
    }
    const int frames = *rc::gen::inRange(0, 4), tokens = *rc::gen::inRange(0, 5);
    const int before = *rc::gen::inRange(0, 3), after = *rc::gen::inRange(0, 3);
    text += fmt::format("frames={}x{}+{}+{}{}", frames, tokens, before, after, i > 1 ? "," : "");
    for (int f = 0; f < frames; ++f) {
      for (int k = 0; k < before; ++k) token(now());
      const int64_t end = now() + tokens - 1;
      for (int k = 0; k < tokens; ++k) token(end);
      for (int k = 0; k < after; ++k) token(now());
    }
  }
  const Mask mask = Mask::parse(text, now());
  for (int64_t q = 0; q < now(); ++q) {
    for (int64_t k = 0; k < now(); ++k) {
      const KeyInterval seen = mask.visible(q);
      const bool sees =
          k >= document[static_cast<size_t>(q)] && k <= frame_end[static_cast<size_t>(q)];
      RC_ASSERT(sees == (seen.begin <= k && k < seen.end));
    }
  }
  const Mask again = Mask::parse(mask.text(), now());
  RC_ASSERT(again.text() == mask.text());
  for (int64_t q = 0; q < now(); ++q) RC_ASSERT(again.visible(q) == mask.visible(q));
}

TEST(Mask, CountsBeyond32Bits) {
  const int64_t seq_len = int64_t{1} << 20;
  const AffineRange all{0, seq_len, 1};
  EXPECT_EQ(Mask::full(seq_len).count_visible(all, all), int64_t{1} << 40);
  EXPECT_EQ(Mask::causal(seq_len).count_visible(all, all), seq_len * (seq_len + 1) / 2);
}

TEST(Mask, RefusesWhatIsNoMask) {
  for (const char* text :
       {"", "casual", "window", "window:0", "window:-3", "docs:0,4,2,16", "docs:1,16", "docs:0,15",
        "prefix:17", "chunked:0", "full:1", "mix:", "mix:text=15", "mix:text", "mix:frames=4",
        "mix:film=16", "mix:frames=99999999999x99999999999"}) {
    EXPECT_THROW(Mask::parse(text, 16), Error) << text;
  }
  try {
    Mask::parse("casual", 16);
  } catch (const Error& error) {
    EXPECT_NE(error.hint().find("did you mean causal"), std::string::npos);
  }
}

}  // namespace
}  // namespace ring
