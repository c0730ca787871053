// GPU kernels by their tiles: schedules against a slot-by-slot count, waves, head dims, decoding.
#include "core/tile_kernel.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <numeric>

namespace ring {
namespace {

TileKernel kernel(int64_t slots = 4) {
  TileKernel kernel;
  kernel.head_dim = 128;
  kernel.tile_rows = 128;
  kernel.step_tokens = 64;
  kernel.slots = slots;
  kernel.per_pair_s = 1e-9;
  kernel.per_tile_s = 1e-6;
  kernel.launch_s = 5e-6;
  return kernel;
}

TileWork full(int64_t rows, int64_t keys, int64_t planes = 1) {
  TileWork work;
  work.rows = rows;
  work.keys = keys;
  work.visible_pairs = rows * keys;
  work.planes = planes;
  return work;
}

TileWork causal(int64_t tokens, int64_t planes = 1) {
  TileWork work = full(tokens, tokens, planes);
  work.edge_rows = tokens - 1;
  work.visible_pairs = tokens * (tokens + 1) / 2;
  return work;
}

/// Every tile goes to the slot with the least to do so far, found by looking at all slots.
double done_by_counting(const std::vector<double>& tiles, int64_t planes, size_t slots) {
  std::vector<double> busy(slots, 0);
  for (int64_t plane = 0; plane < planes; ++plane) {
    for (const double tile : tiles) *std::min_element(busy.begin(), busy.end()) += tile;
  }
  return *std::max_element(busy.begin(), busy.end());
}

RC_GTEST_PROP(TileKernel, SchedulesAsSlotsTakeTiles, ()) {
  const auto tiles =
      *rc::gen::nonEmpty(rc::gen::container<std::vector<int>>(rc::gen::inRange(1, 100)));
  const auto planes = *rc::gen::inRange<int64_t>(1, 6);
  const auto slots = *rc::gen::inRange<int64_t>(1, 9);
  RC_PRE(static_cast<int64_t>(tiles.size()) * planes <= 2048);
  const std::vector<double> seconds(tiles.begin(), tiles.end());
  const TileSchedule schedule = schedule_tiles(seconds, planes, slots);
  // Whole numbers: sums are exact.
  RC_ASSERT(schedule.done_s == done_by_counting(seconds, planes, static_cast<size_t>(slots)));
  RC_ASSERT(schedule.last_start_s <= schedule.done_s);
}

TEST(TileKernel, ManyTilesAreNearTheCount) {
  std::vector<double> tiles(256);
  std::iota(tiles.begin(), tiles.end(), 1.0);
  for (const int64_t planes : {9, 16, 64}) {  // More than are counted one by one.
    const double exact = done_by_counting(tiles, planes, 108);
    // Half a last tile is the mean of what the slots have left; it may be a whole one.
    EXPECT_NEAR(schedule_tiles(tiles, planes, 108).done_s, exact, 0.55 * tiles.back());
  }
}

TEST(TileKernel, EqualTilesComeInWaves) {
  const double tile_s = 1e-6 + 128 * 256 * 1e-9;  // Per tile plus 128 rows by 256 keys.
  // 4 slots: 512 rows are one wave, one row more is another one.
  EXPECT_NEAR(forward_tile_seconds(kernel(), full(512, 256)), 5e-6 + tile_s, 1e-12);
  EXPECT_NEAR(forward_tile_seconds(kernel(), full(513, 256)), 5e-6 + 2 * tile_s, 1e-12);
  EXPECT_NEAR(forward_tile_seconds(kernel(), full(512, 256, 3)), 5e-6 + 3 * tile_s, 1e-12);
  // Keys in whole steps of 64.
  EXPECT_EQ(forward_tile_seconds(kernel(), full(512, 193)),
            forward_tile_seconds(kernel(), full(512, 256)));
}

TEST(TileKernel, ATileAloneOnItsMultiprocessorIsFaster) {
  TileKernel two = kernel(4);
  two.slots_per_unit = 2;
  two.alone_speed = 1.5;
  const double tile_s = 1e-6 + 128 * 256 * 1e-9;
  EXPECT_NEAR(forward_tile_seconds(two, full(256, 256)), 5e-6 + tile_s / 1.5, 1e-12);
  EXPECT_NEAR(forward_tile_seconds(two, full(384, 256)), 5e-6 + tile_s, 1e-12);  // One unit shared.
  EXPECT_NEAR(forward_tile_seconds(two, full(640, 256)), 5e-6 + tile_s * (1 + 1 / 1.5), 1e-12);
}

TEST(TileKernel, ATriangleCostsHalfOfASquareWhenItFillsTheGpu) {
  const double square = forward_tile_seconds(kernel(), full(16384, 16384, 8)) - 5e-6;
  const double triangle = forward_tile_seconds(kernel(), causal(16384, 8)) - 5e-6;
  // 128 tiles a plane: the diagonal adds half a tile of 128, and the last wave half of the longest.
  EXPECT_NEAR(triangle / square, 0.5, 0.5 / 128 + 0.5 / (8 * 128 / 4) + 0.01);
  const double backward = backward_tile_seconds(kernel(), causal(16384, 8)) - 5e-6;
  EXPECT_NEAR(backward / square, 0.5, 0.02);
}

TEST(TileKernel, FewLongTilesAtTheEndLeaveSlotsIdle) {
  // One plane on 128 slots: its longest tile decides, twice the mean. Eight planes take eight means
  // and half a longest tile: 1 / (1/2 + 1/16) = 1.78 times less for each.
  EXPECT_GT(forward_tile_seconds(kernel(128), causal(16384)),
            1.7 * forward_tile_seconds(kernel(128), causal(16384, 8)) / 8);
}

TEST(TileKernel, RowsThatSeeHalfOfTheKeysAreARectangle) {
  TileWork half = full(1024, 2048, 4);
  half.visible_pairs /= 2;
  half.edge_rows = half.rows;
  EXPECT_EQ(forward_tile_seconds(kernel(), half),
            forward_tile_seconds(kernel(), full(1024, 1024, 4)));
}

TEST(TileKernel, SecondsOfAPairAreLinearInTheHeadDim) {
  std::vector<TileKernel> kernels{kernel(), kernel(8)};
  kernels[0].head_dim = 64;
  kernels[0].per_pair_s = 3e-9 * 4;  // 3 ns on the whole GPU.
  kernels[1].per_pair_s = 5e-9 * 8;
  const auto whole = [&](int64_t dim) {
    const TileKernel found = kernel_for(kernels, dim);
    return found.per_pair_s / static_cast<double>(found.slots);
  };
  EXPECT_DOUBLE_EQ(whole(64), 3e-9);
  EXPECT_DOUBLE_EQ(whole(128), 5e-9);
  EXPECT_NEAR(whole(96), 4e-9, 1e-20);
  EXPECT_NEAR(whole(32), 2e-9, 1e-20);
  EXPECT_NEAR(whole(256), 9e-9, 1e-20);
  EXPECT_EQ(kernel_for(kernels, 65).slots, 4);
  EXPECT_EQ(kernel_for(kernels, 127).slots, 8);
}

TEST(TileKernel, DecodingIsBoundByMemory) {
  TileKernel split = kernel(264);
  split.splits_keys = true;
  split.per_pair_s = 1e-13;
  split.memory_bytes_per_s = 2e12;
  TileWork work = full(1, 131072, 16);
  work.planes_per_key_plane = 16;
  work.bytes = 131072 * 2 * 128 * 2;
  // 16 query heads of one KV head fill one tile, cut along the keys over all slots.
  EXPECT_NEAR(forward_tile_seconds(split, work), 5e-6 + work.bytes / 2e12, 1e-9);
}

TEST(TileKernel, ScalingLeavesLaunchesAlone) {
  std::vector<TileKernel> kernels{kernel()};
  const double before = forward_tile_seconds(kernels[0], full(512, 512)) - 5e-6;
  scale_time(kernels, 2);
  EXPECT_NEAR(forward_tile_seconds(kernels[0], full(512, 512)) - 5e-6, 2 * before, 1e-15);
}

}  // namespace
}  // namespace ring
