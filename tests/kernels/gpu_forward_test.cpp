// The forward kernels of GPUs on the host executor, against the fp64 oracle.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "kernels/simt/fault.h"
#include "tests/kernels/gpu_support.h"

namespace ring::test {
namespace {

using cpu::AttendShape;

template <class Config>
AttendShape shape_of(int64_t q_rows, int64_t kv_rows, int heads = 1, int kv_heads = 1) {
  const bool is_half = std::is_same_v<typename Config::Element, simt::F16>;
  return {q_rows,
          kv_rows,
          heads,
          kv_heads,
          Config::kDimQk,
          Config::kDimV,
          is_half ? DType::kF16 : DType::kBF16,
          static_cast<float>(1.0 / std::sqrt(static_cast<double>(Config::kDimQk)))};
}

template <class Config>
class GpuForward : public testing::Test {};
using Configs = testing::Types<F64Small, F64Half, F96, F128Small, F128, F128Half, F192, F256,
                               H64Small, H64Half, H128, H128Half>;
TYPED_TEST_SUITE(GpuForward, Configs);

// Runs from an empty state; the result, the number of mma and the absence of conflicts are checked.
template <class Config>
void expect_exact(const Case& c, uint64_t seed) {
  GpuState state(c.shape);
  const simt::Counters counters = launch_forward<Config>(forward_launch(c, state, true, seed));
  EXPECT_EQ(HasStages<Config> ? counters.wgmma : counters.mma, forward_mma_count<Config>(c));
  EXPECT_EQ(counters.bank_conflicts, 0);
  const auto error = first_gpu_error(c, state);
  EXPECT_FALSE(error) << *error;
}

// Ragged edges on both sides, every kind of span, rows without keys, several heads a KV head.
TYPED_TEST(GpuForward, MatchesTheOracleOverRandomShapes) {
  constexpr int64_t kRows = TypeParam::kRows, kKeys = TypeParam::kKeys;
  std::mt19937_64 random(TypeParam::kDimQk);
  const auto any = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  const int rounds = kRows > 64 ? 6 : 24;
  for (int round = 0; round < rounds; ++round) {
    const int kv_heads = static_cast<int>(any(1, 2)), group = static_cast<int>(any(1, 2));
    const AttendShape shape = shape_of<TypeParam>(any(1, kRows + kRows / 2), any(1, 3 * kKeys + 5),
                                                  kv_heads * group, kv_heads);
    Case c = gpu_case(shape, random());
    SCOPED_TRACE(fmt::format("round {}: {} rows, {} keys, {} of {} heads", round, shape.q_rows,
                             shape.kv_rows, kv_heads, shape.heads));
    if (round % 3 == 1) c.make_causal(any(-shape.q_rows, shape.kv_rows));
    if (round % 3 == 2) c.make_random_spans(random());
    expect_exact<TypeParam>(c, random());
  }
}

// A ring: one state continued over blocks of keys whose offsets differ, some of them unseen.
TYPED_TEST(GpuForward, ContinuesAStateOverBlocks) {
  constexpr int64_t kKeys = TypeParam::kKeys;
  const AttendShape shape = shape_of<TypeParam>(40, 5 * kKeys - 3, 2, 1);
  Case whole = gpu_case(shape, 11);
  whole.make_causal(2 * kKeys);
  GpuState state(shape);
  bool starts = true;
  for (const int64_t from : {4 * kKeys, int64_t{0}, kKeys, 2 * kKeys}) {
    const int64_t to = from == 2 * kKeys ? 4 * kKeys : std::min(from + kKeys, shape.kv_rows);
    ForwardLaunch launch = forward_launch(whole, state, starts, 5);
    launch.params.k.data += from * launch.params.k.token_stride;
    launch.params.v.data += from * launch.params.v.token_stride;
    launch.params.kv_rows = static_cast<int32_t>(to - from);
    std::vector<cuda::KeyRange> spans;
    for (const cpu::KeySpan& span : whole.spans) {
      spans.push_back({static_cast<int32_t>(std::clamp(span.begin - from, int64_t{0}, to - from)),
                       static_cast<int32_t>(std::clamp(span.end - from, int64_t{0}, to - from))});
    }
    launch.params.spans = spans.data();
    launch.options.regions.push_back(
        {spans.data(), static_cast<int64_t>(spans.size() * sizeof(spans[0])), false});
    launch_forward<TypeParam>(launch);
    starts = false;
  }
  const auto error = first_gpu_error(whole, state);
  EXPECT_FALSE(error) << *error;
}

TYPED_TEST(GpuForward, RowsWithoutKeysKeepTheirBits) {
  const AttendShape shape = shape_of<TypeParam>(20, 24);
  Case c = gpu_case(shape, 3);
  c.spans.assign(20, {5, 5});
  GpuState empty(shape), state(shape);
  state.u.assign(state.u.size(), 9.0F);  // What lies there is not read.
  launch_forward<TypeParam>(forward_launch(c, state, true, 1));
  EXPECT_EQ(state, empty);
  launch_forward<TypeParam>(forward_launch(c, state, false, 1));
  EXPECT_EQ(state, empty);
  c.spans.assign(20, {0, 24});
  launch_forward<TypeParam>(forward_launch(c, state, false, 1));
  const GpuState before = state;
  for (size_t row = 0; row < 20; row += 2) c.spans[row] = {7, 3};
  launch_forward<TypeParam>(forward_launch(c, state, false, 1));
  for (size_t row = 0; row < 20; row += 2) {
    EXPECT_EQ(state.m[row], before.m[row]);
    EXPECT_EQ(state.l[row], before.l[row]);
    for (size_t d = 0; d < TypeParam::kDimV; ++d)
      EXPECT_EQ(state.u[row * TypeParam::kDimV + d], before.u[row * TypeParam::kDimV + d]);
  }
}

TYPED_TEST(GpuForward, TheOrderOfTheThreadsDoesNotMatter) {
  Case c = gpu_case(shape_of<TypeParam>(50, 70), 8);
  c.make_causal(20);
  GpuState first(c.shape);
  launch_forward<TypeParam>(forward_launch(c, first, true, 1));
  for (uint64_t seed = 2; seed < 5; ++seed) {
    GpuState state(c.shape);
    launch_forward<TypeParam>(forward_launch(c, state, true, seed));
    EXPECT_EQ(state, first);
  }
}

// Dot products beyond fp32 count as the largest score: no NaN.
TEST(GpuForwardLimits, OverflowingScoresGiveNoNaN) {
  const AttendShape shape = shape_of<F64Small>(16, 32);
  Case c = gpu_case(shape, 4, 1.0);
  for (int64_t row = 0; row < 16; ++row) c.q.set(row, 0, 0, 3e38);
  for (int64_t key = 0; key < 32; ++key) c.k.set(key, 0, 0, key % 2 == 0 ? 3e38 : -3e38);
  GpuState state(shape);
  launch_forward<F64Small>(forward_launch(c, state, true, 1));
  for (size_t row = 0; row < 16; ++row) {
    EXPECT_EQ(state.l[row], 16.0F);
    for (size_t d = 0; d < 64; ++d) EXPECT_TRUE(std::isfinite(state.u[row * 64 + d]));
  }
}

// --- what would be noticed
// ------------------------------------------------------------------------

// Nothing, or how the sabotaged launch was caught: by a fault, a wrong result or conflicts.
template <class Config>
std::string caught(const Case& c, const simt::Sabotage& sabotage) {
  GpuState state(c.shape);
  ForwardLaunch launch = forward_launch(c, state, true, 1);
  launch.options.sabotage = sabotage;
  try {
    const simt::Counters counters = launch_forward<Config>(launch);
    if (counters.bank_conflicts > 0) return "bank conflicts";
  } catch (const simt::SimtFault& fault) {
    return fault.what();
  }
  return first_gpu_error(c, state).value_or("");
}

TEST(GpuForwardMutants, EveryRemovedWaitAndBarrierIsCaught) {
  const Case c = gpu_case(shape_of<F64Small>(32, 40), 5);  // Three tiles of keys.
  EXPECT_EQ(caught<F64Small>(c, {}), "");
  const int tiles = 3;
  for (int i = 0; i < 2 * tiles; ++i) {
    EXPECT_NE(caught<F64Small>(c, {.skip_wait = i}), "") << "wait " << i;
    EXPECT_NE(caught<F64Small>(c, {.skip_barrier = i}), "") << "barrier " << i;
  }
  // No more of them than that: a redundant one would not be caught.
  EXPECT_EQ(caught<F64Small>(c, {.skip_wait = 2 * tiles, .skip_barrier = 2 * tiles}), "");
}

// Three tiles of keys, so that every stage is filled and one of them twice.
TEST(GpuForwardMutants, EveryWaitOfTheHopperKernelIsNeeded) {
  const Case c = gpu_case(shape_of<H64Small>(128, 3 * 32), 5);
  EXPECT_EQ(caught<H64Small>(c, {}), "");
  // Of a computing thread: Q, and K and V of every tile.
  const int tiles = 3;
  for (int i = 0; i < 1 + 2 * tiles; ++i)
    EXPECT_NE(caught<H64Small>(c, {.skip_phase_wait = i, .phase_wait_warp = 4}), "")
        << "wait " << i;
  // Of the fetching warp: K and V of every tile; the stages of the first two are empty at first.
  for (int i = 4; i < 2 * tiles; ++i)
    EXPECT_NE(caught<H64Small>(c, {.skip_phase_wait = i, .phase_wait_warp = 0}), "")
        << "wait " << i;
  // Q K^T of the first tile, then both products of the others, and the last product.
  for (int i = 0; i < 2 * tiles; ++i)
    EXPECT_NE(caught<H64Small>(c, {.skip_wgmma_wait = i}), "") << "wait for a product " << i;
  for (int i = 0; i < tiles + 1; ++i)
    EXPECT_NE(caught<H64Small>(c, {.skip_wgmma_fence = i}), "") << "fence " << i;
  EXPECT_NE(caught<H64Small>(c, {.skip_barrier = 0}), "");
  // Nobody waits for the stages that are left at the end.
  for (int i = 0; i < 2; ++i)
    EXPECT_NE(caught<H64Small>(c, {.skip_arrival = i}), "") << "arrival " << i;
  EXPECT_NE(caught<H64Small>(c, {.skips_init_fence = true}), "");
  EXPECT_NE(caught<H64Small>(c, {.ignores_tensor_swizzle = true}), "");
  EXPECT_NE(caught<H64Small>(c, {.swaps_fragments = true}), "");
}

TEST(GpuForwardMutants, SwappedFragmentsAndWrongSwizzlesAreCaught) {
  for (const bool is_large : {false, true}) {
    const Case small = gpu_case(shape_of<F64Small>(32, 40), 6);
    const Case large = gpu_case(shape_of<F128>(64, 80), 6);
    const auto run = [&](const simt::Sabotage& sabotage) {
      return is_large ? caught<F128>(large, sabotage) : caught<F64Small>(small, sabotage);
    };
    EXPECT_EQ(run({}), "");
    EXPECT_NE(run({.swaps_fragments = true}), "");
    EXPECT_NE(run({.skips_swizzled_bit = true}), "");
  }
}

}  // namespace
}  // namespace ring::test
