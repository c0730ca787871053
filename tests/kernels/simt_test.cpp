// The host executor of device code: its primitives are exact, and what a GPU would forgive is not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "kernels/reference/attention.h"
#include "kernels/simt/host_lane.h"
#include "tests/kernels/simt_support.h"

namespace ring::simt {
namespace {

LaunchOptions options_of(int threads, int shared_bytes = 0, uint64_t seed = 1) {
  LaunchOptions options;
  options.shape.threads = threads;
  options.shape.shared_bytes = shared_bytes;
  options.seed = seed;
  return options;
}

using testing::HasSubstr;
using testing_support::fault_of;

// Places of the elements of a fragment as the PTX ISA states them, element by element.
struct Place {
  int row, column;
};
Place place_in_a(int lane, int element) {
  const bool is_upper = element < 2 || (element >= 4 && element < 6);
  return {lane / 4 + (is_upper ? 0 : 8), lane % 4 * 2 + element % 2 + (element < 4 ? 0 : 8)};
}
Place place_in_b(int lane, int element) {
  return {lane % 4 * 2 + element % 2 + (element < 2 ? 0 : 8), lane / 4};
}
Place place_in_d(int lane, int element) {
  return {lane / 4 + (element < 2 ? 0 : 8), lane % 4 * 2 + element % 2};
}

template <class Element>
uint32_t packed(float low, float high) {
  return narrow(Element{}, low) | (static_cast<uint32_t>(narrow(Element{}, high)) << 16);
}

template <class Element>
void expect_mma_is_the_product() {
  // Small integers: every product and sum is exact, and every element is different from its
  // neighbours.
  const auto a = [](Place at) {
    return static_cast<float>((at.row * 31 + at.column * 7) % 61 - 30);
  };
  const auto b = [](Place at) {
    return static_cast<float>((at.row * 13 + at.column * 29) % 53 - 26);
  };
  float d[16][8];
  const Counters counters = launch(options_of(32), [&](HostLane& lane) {
    uint32_t fragment_a[4], fragment_b[2];
    float sums[4];
    for (int i = 0; i < 4; ++i) {
      fragment_a[i] =
          packed<Element>(a(place_in_a(lane.lane(), 2 * i)), a(place_in_a(lane.lane(), 2 * i + 1)));
      sums[i] = static_cast<float>(1000 * i + lane.lane());
    }
    for (int i = 0; i < 2; ++i)
      fragment_b[i] =
          packed<Element>(b(place_in_b(lane.lane(), 2 * i)), b(place_in_b(lane.lane(), 2 * i + 1)));
    lane.mma(Element{}, sums, fragment_a, fragment_b[0], fragment_b[1]);
    for (int i = 0; i < 4; ++i) {
      const Place at = place_in_d(lane.lane(), i);
      d[at.row][at.column] = sums[i] - static_cast<float>(1000 * i + lane.lane());
    }
  });
  EXPECT_EQ(counters.mma, 1);
  for (int row = 0; row < 16; ++row) {
    for (int column = 0; column < 8; ++column) {
      float sum = 0;
      for (int k = 0; k < 16; ++k) sum += a({row, k}) * b({k, column});
      EXPECT_EQ(d[row][column], sum) << row << ", " << column;
    }
  }
}

TEST(Simt, MmaOfBf16IsTheProductOfItsFragments) { expect_mma_is_the_product<Bf16>(); }
TEST(Simt, MmaOfF16IsTheProductOfItsFragments) { expect_mma_is_the_product<F16>(); }

TEST(Simt, LdmatrixHandsOutEveryElementOfEveryMatrix) {
  const auto value = [](int matrix, int row, int column) {
    return static_cast<uint32_t>(matrix * 64 + row * 8 + column);
  };
  launch(options_of(32, 512), [&](HostLane& lane) {
    const int matrix = lane.lane() / 8, row = lane.lane() % 8;
    Words4 words;
    uint32_t* const parts[] = {&words.x, &words.y, &words.z, &words.w};
    for (int i = 0; i < 4; ++i)
      *parts[i] = value(matrix, row, 2 * i) | (value(matrix, row, 2 * i + 1) << 16);
    const auto at = static_cast<SharedAddress>(16 * lane.lane());
    lane.store_shared(at, words);
    lane.sync_warp();
    uint32_t plain[4], transposed[4];
    lane.ldmatrix(plain, at);
    lane.ldmatrix_trans(transposed, at);
    for (int i = 0; i < 4; ++i) {
      const int g = lane.lane() / 4, t = lane.lane() % 4 * 2;
      EXPECT_EQ(plain[i], value(i, g, t) | (value(i, g, t + 1) << 16));
      EXPECT_EQ(transposed[i], value(i, t, g) | (value(i, t + 1, g) << 16));
    }
  });
}

TEST(Simt, ShufflesAndVotes) {
  const Counters counters = launch(options_of(64), [](HostLane& lane) {
    EXPECT_EQ(lane.shuffle_xor(lane.lane() * 3, 5), (lane.lane() ^ 5) * 3);
    EXPECT_EQ(lane.shuffle_xor(static_cast<float>(lane.lane()), 16),
              static_cast<float>(lane.lane() ^ 16));
    EXPECT_EQ(lane.any(lane.thread() == 40), lane.warp() == 1);
  });
  EXPECT_EQ(counters.shuffles, 4);
}

TEST(Simt, ConversionsAreThoseOfTheOracle) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const float as_bf16 = widen(Bf16{}, half), as_f16 = widen(F16{}, half);
    if (!std::isnan(as_bf16)) {
      EXPECT_EQ(narrow(Bf16{}, as_bf16), half);
    }
    if (!std::isnan(as_f16)) {
      EXPECT_EQ(static_cast<double>(as_f16), reference::f16_value(half));
      EXPECT_EQ(narrow(F16{}, as_f16), half);
    }
  }
  for (uint64_t i = 0; i < 2'000'000; ++i) {  // Steps through all exponents, signs and roundings.
    const float value = float_of(static_cast<uint32_t>(i * 2147));
    if (!std::isfinite(value)) continue;
    ASSERT_EQ(narrow(Bf16{}, value), reference::bf16_bits(static_cast<double>(value))) << value;
    ASSERT_EQ(narrow(F16{}, value), reference::f16_bits(static_cast<double>(value))) << value;
  }
}

// A block that copies 16 bytes per thread, waits, and lets every thread read those of another.
void rotate_copies(HostLane& lane, const uint32_t* from, bool is_there) {
  const auto at = static_cast<SharedAddress>(16 * lane.thread());
  lane.copy_async(at, from + 4 * lane.thread(), is_there);
  lane.commit_copies();
  lane.wait_copies<0>();
  lane.sync_block();
  const int other = (lane.thread() + 32) % lane.threads();
  const auto words = lane.load_shared<Words4>(static_cast<SharedAddress>(16 * other));
  EXPECT_EQ(words.x, is_there ? from[4 * other] : 0U);
  EXPECT_EQ(words.w, is_there ? from[4 * other + 3] : 0U);
}

TEST(Simt, CopiesArriveAndMissingOnesAreZeros) {
  alignas(16) uint32_t from[256];
  for (uint32_t i = 0; i < 256; ++i) from[i] = i * 17 + 1;
  for (uint64_t seed = 1; seed < 20; ++seed) {
    LaunchOptions options = options_of(64, 1024, seed);
    options.regions = {{from, sizeof from, false}};
    const Counters there =
        launch(options, [&](HostLane& lane) { rotate_copies(lane, from, true); });
    EXPECT_EQ(there.copy_bytes, 1024);
    EXPECT_EQ(there.bank_conflicts, 0);
    // A source that is not there is not touched either.
    options.regions = {{&options, 1, false}};
    launch(options, [](HostLane& lane) {
      const auto at = static_cast<SharedAddress>(16 * lane.thread());
      lane.copy_async(at, nullptr, false);
      lane.commit_copies();
      lane.wait_copies<0>();
      EXPECT_EQ(lane.load_shared<Words4>(at).y, 0U);
    });
  }
}

TEST(Simt, LateCopiesAreNotSeenByAnEarlierWait) {
  alignas(16) uint32_t from[4] = {1, 2, 3, 4};
  const auto kernel = [&](HostLane& lane, bool waits_for_all) {
    const auto at = static_cast<SharedAddress>(16 * lane.thread());
    for (uint32_t group = 0; group < 2; ++group) {
      lane.copy_async(at + group * 512, from, true);
      lane.commit_copies();
    }
    lane.wait_copies<1>();
    EXPECT_EQ(lane.load_shared<Words4>(at).x, 1U);
    if (waits_for_all) lane.wait_copies<0>();
    EXPECT_EQ(lane.load_shared<Words4>(at + 512).x, 1U);
    lane.wait_copies<0>();
  };
  EXPECT_EQ(fault_of(options_of(32, 1024), [&](HostLane& lane) { kernel(lane, true); }),
            "no fault");
  EXPECT_THAT(fault_of(options_of(32, 1024), [&](HostLane& lane) { kernel(lane, false); }),
              HasSubstr("before waiting for the copy"));
}

TEST(Simt, RemovedWaitOrBarrierIsAFault) {
  alignas(16) uint32_t from[256] = {};
  const auto kernel = [&](HostLane& lane) { rotate_copies(lane, from, true); };
  LaunchOptions options = options_of(64, 1024);
  EXPECT_EQ(fault_of(options, kernel), "no fault");
  options.sabotage.skip_wait = 0;
  EXPECT_THAT(fault_of(options, kernel), HasSubstr("before waiting for the copy"));
  options.sabotage = {};
  options.sabotage.skip_barrier = 0;
  EXPECT_NE(fault_of(options, kernel), "no fault");
}

TEST(Simt, SharedMemoryHazards) {
  const LaunchOptions options = options_of(64, 1024);
  const auto own = [](const HostLane& lane) {
    return static_cast<SharedAddress>(4 * lane.thread());
  };
  EXPECT_THAT(fault_of(options, [&](HostLane& lane) { lane.load_shared<float>(own(lane)); }),
              HasSubstr("never written"));
  EXPECT_THAT(fault_of(options,
                       [&](HostLane& lane) {
                         lane.store_shared(own(lane), 1.0F);
                         lane.load_shared<float>(own(lane) ^ 4U);
                       }),
              HasSubstr("without a barrier"));
  EXPECT_THAT(fault_of(options,
                       [&](HostLane& lane) {  // Read by the other warp, then overwritten.
                         lane.store_shared(own(lane), 1.0F);
                         lane.sync_block();
                         lane.load_shared<float>(own(lane) ^ 128U);
                         lane.store_shared(own(lane), 2.0F);
                       }),
              testing::AnyOf(HasSubstr("still reads"), HasSubstr("without a barrier")));
  EXPECT_THAT(fault_of(options, [&](HostLane& lane) { lane.store_shared(0, lane.thread()); }),
              HasSubstr("without a barrier"));
  EXPECT_THAT(fault_of(options, [&](HostLane& lane) { lane.store_shared(2, 1.0F); }),
              HasSubstr("not a multiple"));
  EXPECT_THAT(fault_of(options, [&](HostLane& lane) { lane.store_shared(1024, 1.0F); }),
              HasSubstr("outside"));
  EXPECT_EQ(fault_of(options,
                     [&](HostLane& lane) {  // A barrier of the warp is enough within the warp.
                       lane.store_shared(own(lane), 1.0F);
                       lane.sync_warp();
                       lane.load_shared<float>(own(lane) ^ 4U);
                       lane.sync_warp();
                       lane.store_shared(own(lane), 2.0F);
                     }),
            "no fault");
}

TEST(Simt, LanesThatDisagreeEndTheLaunch) {
  const LaunchOptions options = options_of(64);
  EXPECT_THAT(fault_of(options,
                       [](HostLane& lane) {
                         if (lane.lane() == 7) {
                           lane.any(true);
                         } else {
                           lane.sync_warp();
                         }
                       }),
              HasSubstr("comes to a"));
  EXPECT_THAT(fault_of(options,
                       [](HostLane& lane) {
                         if (lane.lane() < 16) return;
                         lane.sync_warp();
                       }),
              HasSubstr("warp"));
  EXPECT_THAT(fault_of(options,
                       [](HostLane& lane) {
                         if (lane.warp() == 1) return;
                         lane.sync_block();
                       }),
              HasSubstr("barrier"));
}

TEST(Simt, GlobalMemoryIsWatched) {
  alignas(16) float values[8] = {};
  LaunchOptions options = options_of(32);
  options.regions = {{values, sizeof values, false}};
  EXPECT_EQ(fault_of(options, [&](HostLane& lane) { lane.load_global(values + lane.lane() % 8); }),
            "no fault");
  EXPECT_THAT(fault_of(options, [&](HostLane& lane) { lane.load_global(values + 8); }),
              HasSubstr("reads foreign"));
  EXPECT_THAT(fault_of(options, [&](HostLane& lane) { lane.store_global(values, 1.0F); }),
              HasSubstr("may not"));
  EXPECT_THAT(fault_of(options,
                       [&](HostLane& lane) {
                         lane.load_global(reinterpret_cast<const Float4*>(values + 1));
                       }),
              HasSubstr("not a multiple of 16"));
}

TEST(Simt, ForgottenCopiesAreAFault) {
  alignas(16) uint32_t from[4] = {};
  EXPECT_THAT(fault_of(options_of(32, 512),
                       [&](HostLane& lane) {
                         lane.copy_async(static_cast<SharedAddress>(16 * lane.lane()), from, true);
                         lane.commit_copies();
                       }),
              HasSubstr("under way"));
}

TEST(Simt, BankConflictsAreCounted) {
  const auto conflicts = [](uint32_t stride, auto value) {
    return launch(options_of(32, 32 * 512),
                  [&](HostLane& lane) {
                    lane.store_shared(static_cast<SharedAddress>(lane.lane()) * stride, value);
                  })
        .bank_conflicts;
  };
  EXPECT_EQ(conflicts(4, 1.0F), 0);
  EXPECT_EQ(conflicts(8, 1.0F), 1);
  EXPECT_EQ(conflicts(128, 1.0F), 31);
  EXPECT_EQ(conflicts(132, 1.0F), 0);
  EXPECT_EQ(conflicts(8, Float2{}), 0);
  EXPECT_EQ(conflicts(16, Float4{}), 0);
  EXPECT_EQ(conflicts(128, Float4{}), 4 * 7);
}

TEST(Simt, TheOrderOfTheThreadsDependsOnTheSeed) {
  const auto order = [](uint64_t seed) {
    std::vector<int> seen;
    launch(options_of(128, 0, seed), [&](HostLane& lane) {
      seen.push_back(lane.thread());
      lane.sync_block();
      seen.push_back(lane.thread());
    });
    return seen;
  };
  EXPECT_EQ(order(3), order(3));
  EXPECT_NE(order(3), order(4));
}

}  // namespace
}  // namespace ring::simt
