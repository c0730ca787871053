// What sm_90 adds, on the host executor: barriers with phases, bulk tensor copies, wgmma. Places of
// elements are written down here from the PTX ISA, apart from the code that they check.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kernels/simt/host_lane.h"
#include "tests/kernels/simt_support.h"

namespace ring::simt {
namespace {

using testing::HasSubstr;
using testing_support::fault_of;

constexpr int kGroup = 128;  // Threads of a warpgroup.
constexpr int kBarrier = 32 << 10;

LaunchOptions options_of(int threads, uint64_t seed = 1) {
  LaunchOptions options;
  options.shape.threads = threads;
  options.shape.shared_bytes = kBarrier + 64;
  options.seed = seed;
  return options;
}

/// Elements that differ from all their neighbours, small enough that sums are exact.
float value_a(int row, int k) { return static_cast<float>((row * 31 + k * 7) % 61 - 30); }
float value_b(int k, int column) { return static_cast<float>((k * 13 + column * 29) % 53 - 26); }

struct Copied {
  std::vector<uint16_t> tensor;  ///< (row, column)
  TensorShape shape;
};
Copied copied(int rows, int columns, int box_rows) {
  Copied result;
  for (int i = 0; i < rows * columns; ++i) result.tensor.push_back(static_cast<uint16_t>(i + 1));
  result.shape.data = result.tensor.data();
  result.shape.extents = {columns, rows, 1, 1};
  result.shape.stride_bytes = {2, 2 * columns, 2 * columns, 2 * columns};
  result.shape.box_columns = 64;
  result.shape.box_rows = box_rows;
  return result;
}

void begin(HostLane& lane) {
  if (lane.warp() == 0) {
    lane.init_barrier(kBarrier, 1, lane.lane() == 0);
    lane.fence_barriers();
  }
  lane.sync_block();
}

TEST(SimtSm90, TensorCopiesPutChunksWhereTheSwizzleSays) {
  const Copied from = copied(20, 128, 16);
  const TensorMap map = host_tensor_map(from.shape);
  launch(options_of(64), [&](HostLane& lane) {
    begin(lane);
    const bool is_one = lane.thread() == 0;
    if (lane.warp() == 0) {
      lane.arrive_announcing(kBarrier, 16 * 128, is_one);
      lane.copy_tensor(1024, map, {64, 8, 0, 0}, kBarrier, is_one);
    }
    lane.wait_phase(kBarrier, 0);
    for (int chunk = lane.thread(); chunk < 16 * 8; chunk += 64) {
      const int row = chunk / 8, place = chunk % 8;
      const auto got = lane.load_shared<Words4>(static_cast<uint32_t>(1024 + chunk * 16));
      // Chunk c of a row of 128 bytes stands at place c ^ (row % 8); the rows end after 12 of them.
      const int column = 64 + (place ^ (row % 8)) * 8;
      const uint32_t want = row < 12 ? static_cast<uint32_t>((8 + row) * 128 + column + 1) : 0;
      EXPECT_EQ(got.x & 0xffffU, want);
      EXPECT_EQ(got.w >> 16, row < 12 ? want + 7 : 0);
    }
  });
}

TEST(SimtSm90, BytesOfACopyArriveAtTheWait) {
  const Copied from = copied(16, 64, 16);
  const TensorMap map = host_tensor_map(from.shape);
  const auto run = [&](bool waits, bool is_fenced, int announced) {
    return fault_of(options_of(32), [&](HostLane& lane) {
      lane.init_barrier(kBarrier, 1, lane.lane() == 0);
      if (is_fenced) lane.fence_barriers();
      lane.sync_block();
      lane.arrive_announcing(kBarrier, announced, lane.lane() == 0);
      lane.copy_tensor(0, map, {0, 0, 0, 0}, kBarrier, lane.lane() == 0);
      if (waits) lane.wait_phase(kBarrier, 0);
      lane.load_shared<uint32_t>(static_cast<uint32_t>(lane.lane() * 4));
    });
  };
  EXPECT_EQ(run(true, true, 16 * 128), "no fault");
  EXPECT_THAT(run(false, true, 16 * 128), HasSubstr("before waiting"));
  EXPECT_THAT(run(true, false, 16 * 128), HasSubstr("no fence"));
  EXPECT_THAT(run(true, true, 16 * 128 + 16), HasSubstr("does not end"));
}

TEST(SimtSm90, OnlyThoseWhoWaitedSeeACopy) {
  const Copied from = copied(16, 64, 16);
  const TensorMap map = host_tensor_map(from.shape);
  const std::string fault = fault_of(options_of(64), [&](HostLane& lane) {
    begin(lane);
    if (lane.warp() == 0) {
      lane.arrive_announcing(kBarrier, 16 * 128, lane.lane() == 0);
      lane.copy_tensor(0, map, {0, 0, 0, 0}, kBarrier, lane.lane() == 0);
      lane.wait_phase(kBarrier, 0);
    } else {
      lane.load_shared<uint32_t>(static_cast<uint32_t>(lane.lane() * 4));
    }
  });
  EXPECT_NE(fault, "no fault");
}

TEST(SimtSm90, PhasesOrderWarpsBothWays) {
  // Warp 0 writes and warp 1 reads the same word, in turns.
  const auto run = [&](bool waits_for_reader) {
    return fault_of(options_of(64), [&](HostLane& lane) {
      if (lane.warp() == 0) {
        lane.init_barrier(kBarrier, 1, lane.lane() == 0);
        lane.init_barrier(kBarrier + 8, 1, lane.lane() == 0);
      }
      lane.sync_block();
      const auto own = static_cast<uint32_t>(lane.lane() * 4);
      for (int turn = 0; turn < 5; ++turn) {
        if (lane.warp() == 0) {
          if (waits_for_reader) lane.wait_phase(kBarrier + 8, (turn + 1) % 2);
          lane.store_shared(own, turn * 100 + lane.lane());
          lane.sync_warp();
          lane.arrive(kBarrier, lane.lane() == 0);
        } else {
          lane.wait_phase(kBarrier, turn % 2);
          const int got = lane.load_shared<int>(own);
          if (waits_for_reader) {
            EXPECT_EQ(got, turn * 100 + lane.lane());
          }
          lane.arrive(kBarrier + 8, lane.lane() == 0);
        }
      }
    });
  };
  EXPECT_EQ(run(true), "no fault");
  EXPECT_NE(run(false), "no fault");
}

TEST(SimtSm90, BarriersAreNotToBeTouchedOrForgotten) {
  EXPECT_THAT(fault_of(options_of(32),
                       [](HostLane& lane) {
                         begin(lane);
                         lane.load_shared<uint32_t>(kBarrier);
                       }),
              HasSubstr("within a barrier"));
  EXPECT_THAT(fault_of(options_of(32), [](HostLane& lane) { lane.wait_phase(kBarrier, 0); }),
              HasSubstr("no barrier"));
  EXPECT_THAT(fault_of(options_of(32),
                       [](HostLane& lane) {
                         begin(lane);
                         lane.arrive(kBarrier, lane.lane() < 2);
                         lane.wait_phase(kBarrier, 1);
                       }),
              HasSubstr("no fault"));
  EXPECT_THAT(fault_of(options_of(32),
                       [](HostLane& lane) {
                         begin(lane);
                         lane.wait_phase(kBarrier, 0);
                       }),
              HasSubstr("does not end"));
}

/// Byte of element (line, index) in lines of 128 bytes, swizzled: what both layouts come down to.
uint32_t place_of(int line, int index) {
  return static_cast<uint32_t>(line * 128 + ((index / 8) ^ (line % 8)) * 16 + index % 8 * 2);
}

/// Writes a (64, 16) as rows, at column 16 `step` of lines of 64 elements, and b (16, 64) to 8192
/// on: as 64 rows of 16 (the same columns), or as 16 lines whose columns are contiguous.
template <class Element>
void write_operands(HostLane& lane, int step, bool is_transposed) {
  const auto store = [&](uint32_t at, float low, float high) {
    lane.store_shared(
        at, narrow(Element{}, low) | (static_cast<uint32_t>(narrow(Element{}, high)) << 16));
  };
  for (int i = lane.thread(); i < 64 * 8; i += kGroup) {
    const int row = i / 8, k = i % 8 * 2;
    store(place_of(row, 16 * step + k), value_a(row, k), value_a(row, k + 1));
    if (is_transposed) {
      const int line = i / 32, column = i % 32 * 2;
      store(8192 + place_of(line, column), value_b(line, column), value_b(line, column + 1));
    } else {
      store(8192 + place_of(row, 16 * step + k), value_b(k, row), value_b(k + 1, row));
    }
  }
}

void expect_product(HostLane& lane, const float (&d)[8][4], float before) {
  for (int j = 0; j < 8; ++j) {
    for (int e = 0; e < 4; ++e) {
      const int row = lane.warp() * 16 + lane.lane() / 4 + e / 2 * 8;
      const int column = j * 8 + lane.lane() % 4 * 2 + e % 2;
      float want = before;
      for (int k = 0; k < 16; ++k) want += value_a(row, k) * value_b(k, column);
      EXPECT_EQ(d[j][e], want);
    }
  }
}

template <class Element>
void expect_both_products() {
  for (const int step : {0, 1, 3}) {
    launch(options_of(kGroup), [&](HostLane& lane) {
      write_operands<Element>(lane, step, false);
      lane.fence_async();
      lane.sync_block();
      float d[8][4];
      for (auto& four : d) std::fill(std::begin(four), std::end(four), 7.0F);
      const auto offset = static_cast<uint32_t>(32 * step);
      lane.wgmma_fence();
      for (const bool accumulates : {false, true}) {
        lane.wgmma(Element{}, d, matrix_descriptor(offset, 16, 1024),
                   matrix_descriptor(8192 + offset, 16, 1024), accumulates);
      }
      lane.wgmma_commit();
      lane.wgmma_wait<0>(d);
      for (auto& four : d) {
        for (float& value : four) value /= 2;
      }
      expect_product(lane, d, 0);
    });
  }
  launch(options_of(kGroup), [&](HostLane& lane) {
    write_operands<Element>(lane, 0, true);
    lane.fence_async();
    lane.sync_block();
    float d[8][4];
    for (auto& four : d) std::fill(std::begin(four), std::end(four), 7.0F);
    uint32_t a[1][4];
    const int row = lane.warp() * 16 + lane.lane() / 4, k = lane.lane() % 4 * 2;
    for (int i = 0; i < 4; ++i) {
      const int at_row = row + i % 2 * 8, at_k = k + i / 2 * 8;
      a[0][i] = lane.pack(Element{}, value_a(at_row, at_k), value_a(at_row, at_k + 1));
    }
    lane.wgmma_fence();
    lane.wgmma_columns(Element{}, d, a[0], matrix_descriptor(8192, 0, 1024));
    lane.wgmma_commit();
    lane.wgmma_wait<0>(d, a);
    expect_product(lane, d, 7);
  });
}

TEST(SimtSm90, WgmmaOfBf16IsTheProduct) { expect_both_products<Bf16>(); }
TEST(SimtSm90, WgmmaOfF16IsTheProduct) { expect_both_products<F16>(); }

/// What is wrong with a product, by what is done to it.
struct Wrong {
  bool skips_fence_async = false, skips_wgmma_fence = false, skips_wait = false;
  bool changes_left_side = false, changes_shared = false, disagrees = false;
  uint64_t descriptor_bits = 0;
};

std::string fault_of_product(const Wrong& wrong) {
  return fault_of(options_of(kGroup), [&](HostLane& lane) {
    write_operands<Bf16>(lane, 0, true);
    if (!wrong.skips_fence_async) lane.fence_async();
    lane.sync_block();
    float d[8][4] = {};
    uint32_t a[1][4] = {};
    const uint32_t other = wrong.disagrees && lane.warp() == 2 ? 1024 : 0;
    if (!wrong.skips_wgmma_fence) lane.wgmma_fence();
    lane.wgmma_columns(Bf16{}, d, a[0],
                       matrix_descriptor(8192 - other, 0, 1024) ^ wrong.descriptor_bits);
    lane.wgmma_commit();
    EXPECT_TRUE(std::isnan(d[0][0]));
    if (wrong.changes_left_side) a[0][1] = 5;
    if (wrong.changes_shared) {
      lane.store_shared(static_cast<uint32_t>(8192 + lane.thread() * 4), 0);
      lane.fence_async();
    }
    if (!wrong.skips_wait) lane.wgmma_wait<0>(d, a);
  });
}

TEST(SimtSm90, ProductsAreNotForgiving) {
  EXPECT_EQ(fault_of_product({}), "no fault");
  EXPECT_THAT(fault_of_product({.skips_fence_async = true}), HasSubstr("did not fence"));
  EXPECT_THAT(fault_of_product({.skips_wgmma_fence = true}), HasSubstr("without a wgmma fence"));
  EXPECT_THAT(fault_of_product({.skips_wait = true}), HasSubstr("products under way"));
  EXPECT_THAT(fault_of_product({.changes_left_side = true}), HasSubstr("changed registers"));
  EXPECT_THAT(fault_of_product({.changes_shared = true}), HasSubstr("still reads"));
  EXPECT_THAT(fault_of_product({.disagrees = true}), HasSubstr("of its warpgroup"));
  EXPECT_THAT(fault_of_product({.descriptor_bits = uint64_t{3} << 62}), HasSubstr("swizzle"));
  EXPECT_THAT(fault_of_product({.descriptor_bits = 8}), HasSubstr("within a pattern"));
}

}  // namespace
}  // namespace ring::simt
