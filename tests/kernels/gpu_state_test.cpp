// The kernels that finalize, merge, reset and convert, on the host executor.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "kernels/cuda/state_kernels.h"
#include "kernels/reference/attention.h"
#include "kernels/simt/host_lane.h"
#include "tests/kernels/gpu_support.h"

namespace ring::test {
namespace {

using simt::Bf16, simt::F16, simt::HostLane;

constexpr float kNone = -std::numeric_limits<float>::infinity();

simt::LaunchOptions options_of(const simt::LaunchShape& shape) {
  simt::LaunchOptions options;
  options.shape = shape;
  return options;
}

cpu::AttendShape shape_of(int64_t rows, int heads, int dim) {
  return {rows, 0, heads, heads, dim, dim, DType::kBF16, 1.0F};
}

GpuState random_state(const cpu::AttendShape& shape, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal(0, 3);
  GpuState state(shape);
  for (size_t row = 0; row < state.m.size(); ++row) {
    if (random() % 4 == 0) continue;  // Some rows have seen nothing.
    state.m[row] = normal(random) * 10;
    state.l[row] = 1 + std::fabs(normal(random));
    for (size_t d = 0; d < static_cast<size_t>(shape.dim_v); ++d)
      state.u[row * static_cast<size_t>(shape.dim_v) + d] = normal(random);
  }
  return state;
}

TEST(GpuState, FinalizeDividesAndTakesTheLogarithm) {
  for (const int dim : {64, 96, 128, 256}) {
    const cpu::AttendShape shape = shape_of(37, 3, dim);
    GpuState state = random_state(shape, 5);
    std::vector<uint16_t> out(static_cast<size_t>(37 * 3 * dim), 0x7fff);
    std::vector<float> lse(state.m.size());
    const cuda::FinalizeParams p{
        state.view(shape), {out.data(), 0, 3 * dim, dim}, lse.data(), 37, dim, 0, 37};
    simt::LaunchOptions options = options_of(cuda::state_shape(37, 3, 1, dim));
    options.regions = {{state.u.data(), static_cast<int64_t>(state.u.size() * 4), false},
                       {state.m.data(), static_cast<int64_t>(state.m.size() * 4), false},
                       {state.l.data(), static_cast<int64_t>(state.l.size() * 4), false},
                       {out.data(), static_cast<int64_t>(out.size() * 2), true},
                       {lse.data(), static_cast<int64_t>(lse.size() * 4), true}};
    launch(options, [&](HostLane& lane) { cuda::finalize<Bf16>(lane, p); });
    for (size_t row = 0; row < state.m.size(); ++row) {
      const double l = static_cast<double>(state.l[row]), m = static_cast<double>(state.m[row]);
      const double want = l > 0 ? m * std::log(2.0) + std::log(l) : -HUGE_VAL;
      if (l > 0) {
        EXPECT_NEAR(static_cast<double>(lse[row]), want, 0x1p-22 * (std::fabs(want) + 30));
      } else {
        EXPECT_EQ(lse[row], kNone);
      }
      const size_t head = row / 37, token = row % 37, width = static_cast<size_t>(dim);
      for (size_t d = 0; d < width; ++d) {
        const double exact = l > 0 ? static_cast<double>(state.u[row * width + d]) / l : 0;
        const double have = reference::bf16_value(out[(token * 3 + head) * width + d]);
        EXPECT_LE(std::fabs(have - exact), 0x1.02p-8 * std::fabs(exact));
      }
    }
  }
}

TEST(GpuState, MergeAddsTwoStatesAndLeavesEmptyOnesOut) {
  for (const int dim : {64, 96, 128, 256}) {
    const cpu::AttendShape shape = shape_of(29, 2, dim);
    GpuState a = random_state(shape, 1), b = random_state(shape, 2);
    const GpuState before = a;
    const cuda::MergeStateParams p{a.view(shape), b.view(shape), 29, dim};
    launch(options_of(cuda::state_shape(29, 2, 1, dim)),
           [&](HostLane& lane) { cuda::merge_state(lane, p); });
    for (size_t row = 0; row < a.m.size(); ++row) {
      const float top = std::max(before.m[row], b.m[row]);
      EXPECT_EQ(a.m[row], top);
      const double keep = top == kNone ? 0 : std::exp2(static_cast<double>(before.m[row] - top));
      const double add = top == kNone ? 0 : std::exp2(static_cast<double>(b.m[row] - top));
      for (size_t d = 0; d < static_cast<size_t>(dim); ++d) {
        const size_t at = row * static_cast<size_t>(dim) + d;
        const double x = keep * static_cast<double>(before.u[at]);
        const double y = add * static_cast<double>(b.u[at]);
        EXPECT_NEAR(static_cast<double>(a.u[at]), x + y, 0x1p-22 * (std::fabs(x) + std::fabs(y)));
        // Whole bits of one side where the other is empty.
        if (b.l[row] == 0) {
          EXPECT_EQ(a.u[at], before.u[at]);
        }
        if (before.l[row] == 0) {
          EXPECT_EQ(a.u[at], b.u[at]);
        }
      }
      const double sum =
          keep * static_cast<double>(before.l[row]) + add * static_cast<double>(b.l[row]);
      EXPECT_NEAR(static_cast<double>(a.l[row]), sum, 0x1p-22 * sum);
    }
  }
}

TEST(GpuState, MergedOutputsAreThoseOfTheCpu) {
  constexpr int64_t kRows = 21;
  constexpr int kDim = 64;
  std::mt19937_64 random(3);
  std::normal_distribution<float> normal;
  std::vector<float> o[2], lse[2];
  for (int side = 0; side < 2; ++side) {
    for (int64_t i = 0; i < kRows * kDim; ++i) o[side].push_back(normal(random));
    for (int64_t i = 0; i < kRows; ++i)
      lse[side].push_back(random() % 4 == 0 ? kNone : 5 * normal(random));
  }
  std::vector<float> want_o = o[0], want_lse = lse[0];
  cpu::merge_output(want_o.data(), want_lse.data(), o[1].data(), lse[1].data(), kRows, kDim);
  const cuda::MergeOutputParams p{o[0].data(),   lse[0].data(), o[1].data(),
                                  lse[1].data(), kRows,         kDim};
  launch(options_of(cuda::state_shape(kRows, 1, 1, kDim)),
         [&](HostLane& lane) { cuda::merge_output(lane, p); });
  for (size_t i = 0; i < want_o.size(); ++i) EXPECT_NEAR(o[0][i], want_o[i], 1e-5);
  for (size_t i = 0; i < want_lse.size(); ++i) {
    if (want_lse[i] == kNone) {
      EXPECT_EQ(lse[0][i], kNone);
    } else {
      EXPECT_NEAR(lse[0][i], want_lse[i], 1e-5);
    }
  }
}

TEST(GpuState, ResetIsTheEmptyState) {
  const cpu::AttendShape shape = shape_of(19, 2, 96);
  GpuState state = random_state(shape, 9);
  const cuda::ResetStateParams p{state.view(shape), 19, 96};
  launch(options_of(cuda::state_shape(19, 2, 1, 96)),
         [&](HostLane& lane) { cuda::reset_state(lane, p); });
  EXPECT_EQ(state, GpuState(shape));
}

// A partial result travels as u and m: its l is known from them.
TEST(GpuState, PartialResultsComeBackWhole) {
  for (const int dim : {64, 96, 256}) {
    const cpu::AttendShape shape = shape_of(23, 3, dim);
    const GpuState before = random_state(shape, 6);
    GpuState state = before;
    const cuda::ResetStateParams p{state.view(shape), 23, dim};
    const auto options = options_of(cuda::state_shape(23, 3, 1, dim));
    launch(options, [&](HostLane& lane) { cuda::normalize_state(lane, p); });
    const GpuState normal = state;
    state.l.assign(state.l.size(), 7.0F);  // What did not travel.
    launch(options, [&](HostLane& lane) { cuda::complete_state(lane, p); });
    EXPECT_EQ(state, normal);
    for (size_t row = 0; row < state.m.size(); ++row) {
      const double l = static_cast<double>(before.l[row]);
      if (l == 0) {
        EXPECT_EQ(state.l[row], 0.0F);
        EXPECT_EQ(state.m[row], before.m[row]);
        continue;
      }
      const double m = static_cast<double>(before.m[row]) + std::log2(l);
      EXPECT_NEAR(static_cast<double>(state.m[row]), m, 0x1p-22 * (std::fabs(m) + 30));
      for (size_t d = 0; d < static_cast<size_t>(dim); ++d) {
        const size_t at = row * static_cast<size_t>(dim) + d;
        const double u = static_cast<double>(before.u[at]) / l;
        EXPECT_NEAR(static_cast<double>(state.u[at]), u, 0x1p-22 * std::fabs(u));
      }
    }
  }
}

// A state and another kernel's result of further keys, against the two merged in fp64.
TEST(GpuState, ResultsOfOtherKernelsAreAbsorbed) {
  constexpr int kRows = 21, kHeads = 2, kDim = 64;
  const cpu::AttendShape shape = shape_of(kRows, kHeads, kDim);
  for (const bool starts : {false, true}) {
    const GpuState before = random_state(shape, 12);
    GpuState state = before;
    std::mt19937_64 random(2);
    std::normal_distribution<float> normal;
    std::vector<uint16_t> out(kRows * kHeads * kDim);
    std::vector<float> lse(kRows * kHeads);
    for (uint16_t& value : out) value = simt::narrow(Bf16{}, normal(random));
    for (float& value : lse) value = random() % 4 == 0 ? kNone : 10 * normal(random);
    const cuda::AbsorbParams p{state.view(shape), out.data(), lse.data(), 0, kRows, kRows, kDim,
                               starts ? 1 : 0};
    launch(options_of(cuda::state_shape(kRows, kHeads, 1, kDim)),
           [&](HostLane& lane) { cuda::absorb_output<Bf16>(lane, p); });
    for (size_t row = 0; row < lse.size(); ++row) {
      const double other = static_cast<double>(lse[row]) / std::log(2.0);
      const double m = starts ? -HUGE_VAL : static_cast<double>(before.m[row]);
      const double top = std::max(m, other);
      const double keep = std::isinf(m) ? 0 : std::exp2(m - top);
      const double add = std::isinf(other) ? 0 : std::exp2(other - top);
      const double l = keep * (starts ? 0 : static_cast<double>(before.l[row])) + add;
      EXPECT_NEAR(static_cast<double>(state.l[row]), l, 0x1p-18 * (l + 1));
      for (size_t d = 0; d < kDim; ++d) {
        const size_t at = row * kDim + d;
        const double old = starts ? 0 : static_cast<double>(before.u[at]);
        const double u = keep * old + add * static_cast<double>(simt::widen(Bf16{}, out[at]));
        EXPECT_NEAR(static_cast<double>(state.u[at]), u, 0x1p-17 * (std::fabs(old) + 4));
      }
    }
  }
}

TEST(GpuState, SumsOfGradientsAreAdded) {
  constexpr int64_t kCount = 8 * 301;
  std::vector<float> to(kCount), from(kCount), want(kCount);
  for (size_t i = 0; i < to.size(); ++i) {
    to[i] = static_cast<float>(i);
    from[i] = static_cast<float>(3 * i + 1);
    want[i] = to[i] + from[i];
  }
  launch(options_of(cuda::convert_shape(kCount)), [&](HostLane& lane) {
    cuda::add_all(lane, {to.data(), from.data(), kCount});
  });
  EXPECT_EQ(to, want);
  // Rows of some heads among others.
  std::vector<float> wide(5 * 48), narrow(5 * 16);
  for (size_t i = 0; i < narrow.size(); ++i) narrow[i] = static_cast<float>(i + 1);
  launch(options_of(cuda::convert_shape(5 * 16)), [&](HostLane& lane) {
    cuda::add_all(lane, {wide.data() + 8, narrow.data(), 16, 5, 48, 16});
  });
  for (size_t i = 0; i < wide.size(); ++i) {
    const size_t row = i / 48, at = i % 48;
    EXPECT_EQ(wide[i], at >= 8 && at < 24 ? static_cast<float>(row * 16 + at - 7) : 0.0F);
  }
}

// delta in the order (row, head) of what travels, with lse brought from (head, row) beside it.
TEST(GpuState, DeltaBringsTheLogarithmsAlong) {
  constexpr int kRows = 9, kHeads = 3, kDim = 64;
  std::vector<uint16_t> out(kRows * kHeads * kDim), d_out(out.size());
  std::vector<double> want(kRows * kHeads);
  for (size_t i = 0; i < out.size(); ++i) {
    const float a = static_cast<float>(i % 7) - 3, b = static_cast<float>(i % 5) - 2;
    out[i] = simt::narrow(Bf16{}, a);
    d_out[i] = simt::narrow(Bf16{}, b);
    want[i / kDim] += static_cast<double>(a) * static_cast<double>(b);
  }
  std::vector<float> lse(kRows * kHeads), delta(lse.size()), copied(lse.size());
  for (size_t i = 0; i < lse.size(); ++i) lse[i] = static_cast<float>(i);
  cuda::DeltaParams p;
  p.out = {out.data(), 0, kHeads * kDim, kDim};
  p.d_out = {d_out.data(), 0, kHeads * kDim, kDim};
  p.delta = delta.data();
  p.head_stride = 1;
  p.row_stride = kHeads;
  p.rows = kRows;
  p.dim_v = kDim;
  p.lse = lse.data();
  p.lse_head_stride = kRows;
  p.lse_copy = copied.data();
  launch(options_of(cuda::delta_shape(kRows, kHeads, 1)),
         [&](HostLane& lane) { cuda::row_delta<Bf16>(lane, p); });
  for (size_t row = 0; row < kRows; ++row) {
    for (size_t head = 0; head < kHeads; ++head) {
      const size_t at = row * kHeads + head;
      EXPECT_EQ(static_cast<double>(delta[at]), want[at]);
      EXPECT_EQ(copied[at], lse[head * kRows + row]);
    }
  }
}

TEST(GpuState, ConversionsRoundToNearestAndMoveEveryByteOnce) {
  constexpr int64_t kCount = 8 * 300;
  std::vector<float> wide(kCount), back(kCount);
  std::mt19937_64 random(4);
  for (float& value : wide) value = std::normal_distribution<float>()(random);
  std::vector<uint16_t> narrow(kCount);
  const auto counters = launch(options_of(cuda::convert_shape(kCount)), [&](HostLane& lane) {
    cuda::narrow_all<F16>(lane, {wide.data(), narrow.data(), kCount});
  });
  EXPECT_EQ(counters.global_read_bytes, kCount * 4);
  EXPECT_EQ(counters.global_written_bytes, kCount * 2);
  launch(options_of(cuda::convert_shape(kCount)), [&](HostLane& lane) {
    cuda::widen_all<F16>(lane, {back.data(), narrow.data(), kCount});
  });
  for (size_t i = 0; i < wide.size(); ++i) {
    EXPECT_EQ(narrow[i], reference::f16_bits(static_cast<double>(wide[i])));
    EXPECT_EQ(static_cast<double>(back[i]), reference::f16_value(narrow[i]));
  }
}

}  // namespace
}  // namespace ring::test
