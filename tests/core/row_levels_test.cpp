#include "core/row_levels.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <random>

namespace ring {
namespace {

/// Bars with gaps, waits and some without length.
std::vector<LevelBar> random_bars(uint64_t seed, size_t count, int64_t longest) {
  std::mt19937_64 random(seed);
  std::vector<LevelBar> bars;
  Picoseconds at = static_cast<Picoseconds>(random() % 1000);
  for (uint32_t i = 0; i < count; ++i) {
    const bool is_long = random() % 50 == 0;
    const auto length =
        static_cast<Picoseconds>(random() % static_cast<uint64_t>(longest)) * (is_long ? 500 : 1);
    const auto of_class = static_cast<BarClass>(random() % kBarClasses);
    bars.push_back({at, at + length, i, of_class, 255, false});
    at += length + (random() % 3 == 0 ? static_cast<Picoseconds>(random() % 100) : 0);
  }
  return bars;
}

/// How much of each class lies in [from, to), worked out bar by bar.
std::array<double, kBarClasses> filled(const std::vector<LevelBar>& bars, double from, double to) {
  std::array<double, kBarClasses> sum{};
  for (const LevelBar& bar : bars) {
    const double begin = std::max(from, static_cast<double>(bar.begin_ps));
    const double end = std::min(to, static_cast<double>(bar.end_ps));
    if (begin < end) sum[bar.of_class] += end - begin;
  }
  return sum;
}

double total(const std::array<double, kBarClasses>& shares) {
  double sum = 0;
  for (const double share : shares) sum += share;
  return sum;
}

std::vector<PixelRun> fold(const RowLevels& levels, Picoseconds from, Picoseconds to, int columns) {
  std::vector<PixelRun> runs;
  levels.fold(from, to, columns, runs);
  return runs;
}

TEST(RowLevels, RunsAreInOrderAndWithinTheColumns) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const auto bars = random_bars(seed, 3000, 1 + static_cast<int64_t>(seed) * 5);
    const RowLevels levels(bars);
    const Picoseconds end = bars.back().end_ps;
    for (const auto& [from, to] : {std::pair<Picoseconds, Picoseconds>{0, end + 1},
                                   {end / 3, end / 2 + 1},
                                   {end / 2, end / 2 + 40},
                                   {-1000, 3 * end}}) {
      int32_t last = 0;
      for (const PixelRun& run : fold(levels, from, to, 700)) {
        ASSERT_GE(run.begin, last);
        ASSERT_LT(run.begin, run.end);
        ASSERT_LE(run.end, 700);
        last = run.end;
      }
    }
  }
}

// A folded column shows a class that fills most of it, or, where levels have mixed bars at its
// borders, nearly most; and its fill is that of the bars within a column to either side.
TEST(RowLevels, AColumnShowsWhatFillsMostOfIt) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const auto bars = random_bars(seed, 20'000, 30);
    const RowLevels levels(bars);
    ASSERT_GT(levels.level_count(), 1U);
    const Picoseconds end = bars.back().end_ps;
    const int columns = 400;
    const double column = static_cast<double>(end) / columns;
    for (const PixelRun& run : fold(levels, 0, end, columns)) {
      if (!run.is_folded) continue;
      // A level joins bars over up to two windows, each at most a column.
      const auto near = filled(bars, (run.begin - 2) * column, (run.end + 2) * column);
      const double width = (run.end - run.begin) * column;
      const auto exact = filled(bars, run.begin * column, run.end * column);
      EXPECT_GT(near[run.of_class], 0);
      EXPECT_NEAR(run.fill / 255.0, total(exact) / width, 1.01);
    }
  }
}

TEST(RowLevels, FillIsExactWhereNoLevelIsUsed) {
  // Ten bars a column, each filling two fifths of its share: 102 of 255, which is six steps.
  std::vector<LevelBar> bars;
  for (uint32_t i = 0; i < 50; ++i) {
    bars.push_back({i * 10, i * 10 + 4, i, bar_class(OpKind::kAttend), 255, false});
  }
  const auto runs = fold(RowLevels(bars), 0, 500, 5);
  ASSERT_EQ(runs.size(), 1U);  // All columns look alike.
  EXPECT_EQ(runs[0].begin, 0);
  EXPECT_EQ(runs[0].end, 5);
  EXPECT_EQ(runs[0].fill, 102);
  EXPECT_TRUE(runs[0].is_folded);
  EXPECT_EQ(runs[0].slice, 0U);
}

TEST(RowLevels, FewWideBarsAreShownAsTheyAre) {
  const std::vector<LevelBar> bars{{0, 40, 7, bar_class(OpKind::kAttend), 255, false},
                                   {40, 60, 8, kWaitClass, 255, false},
                                   {60, 100, 8, bar_class(OpKind::kReceive), 255, false}};
  const auto runs = fold(RowLevels(bars), 0, 100, 50);
  ASSERT_EQ(runs.size(), 3U);
  EXPECT_EQ(runs[0].begin, 0);
  EXPECT_EQ(runs[0].end, 20);
  EXPECT_EQ(runs[1].end, 30);
  EXPECT_EQ(runs[1].of_class, kWaitClass);
  EXPECT_EQ(runs[2].end, 50);
  EXPECT_EQ(runs[2].slice, 8U);
  EXPECT_FALSE(runs[2].is_folded);
}

TEST(RowLevels, ABarWithoutLengthIsStillSeen) {
  const std::vector<LevelBar> bars{{50, 50, 3, bar_class(OpKind::kMerge), 255, false}};
  const auto runs = fold(RowLevels(bars), 0, 100, 10);
  ASSERT_EQ(runs.size(), 1U);
  EXPECT_EQ(runs[0].begin, 5);
  EXPECT_EQ(runs[0].end, 6);
  EXPECT_EQ(runs[0].of_class, bar_class(OpKind::kMerge));
  EXPECT_GT(runs[0].fill, 0);
}

// Whatever the level, all time that bars fill is drawn and nothing else: shares of columns, times
// their length, add up to the bars. Fills are rounded to 17 of 255, so half a step a column.
TEST(RowLevels, NothingIsLostBetweenLevels) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    const auto bars = random_bars(seed, 30'000, 40);
    const RowLevels levels(bars);
    const Picoseconds end = bars.back().end_ps;
    for (const int columns : {50, 300, 2000}) {
      double drawn = 0;
      for (const PixelRun& run : fold(levels, 0, end, columns)) {
        drawn += (run.end - run.begin) * (run.fill / 255.0);
      }
      const double expected =
          total(filled(bars, 0, static_cast<double>(end))) / static_cast<double>(end) * columns;
      EXPECT_NEAR(drawn, expected, columns * (8.5 / 255) + 2) << columns << " columns";
    }
  }
}

RC_GTEST_PROP(RowLevels, BarAtFindsTheBarOfATime, ()) {
  const auto bars = random_bars(*rc::gen::arbitrary<uint64_t>(), 200, 30);
  const RowLevels levels(bars);
  const auto at = *rc::gen::inRange<Picoseconds>(0, bars.back().end_ps + 1);
  const auto found = levels.bar_at(at, 0);
  bool is_in_any = false;
  for (const LevelBar& bar : bars) is_in_any |= bar.begin_ps <= at && at < bar.end_ps;
  if (is_in_any) {
    RC_ASSERT(found.has_value());
    RC_ASSERT(bars[*found].begin_ps <= at);
    RC_ASSERT(bars[*found].end_ps > at);
  }
}

TEST(RowLevels, BarAtTakesTheNearestWithinReach) {
  const std::vector<LevelBar> bars{{0, 10, 0, 0, 255, false}, {100, 110, 1, 0, 255, false}};
  const RowLevels levels(bars);
  EXPECT_EQ(levels.bar_at(50, 5), std::nullopt);
  EXPECT_EQ(levels.bar_at(13, 5), 0U);
  EXPECT_EQ(levels.bar_at(97, 5), 1U);
  EXPECT_EQ(levels.bar_at(60, 100), 1U);
  EXPECT_EQ(levels.bar_at(50, 100), 0U);
  EXPECT_EQ(RowLevels().bar_at(0, 10), std::nullopt);
}

RC_GTEST_PROP(RowLevels, BarsBetweenAreThoseThatTouch, ()) {
  const auto bars = random_bars(*rc::gen::arbitrary<uint64_t>(), 100, 30);
  const RowLevels levels(bars);
  const Picoseconds end = bars.back().end_ps;
  const auto a = *rc::gen::inRange<Picoseconds>(0, end + 1);
  const auto b = *rc::gen::inRange<Picoseconds>(a + 1, end + 2);
  const auto [first, last] = levels.bars_between(a, b);
  for (size_t i = 0; i < bars.size(); ++i) {
    const LevelBar& bar = bars[i];
    const bool touches = bar.begin_ps == bar.end_ps ? bar.begin_ps >= a && bar.begin_ps <= b
                                                    : bar.begin_ps < b && bar.end_ps > a;
    RC_ASSERT((i >= first && i < last) == touches);
  }
}

}  // namespace
}  // namespace ring
