// The forward block kernel on every instruction set against the fp64 oracle.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "core/error.h"
#include "tests/kernels/cpu_support.h"

namespace ring::test {
namespace {

using cpu::AttendShape;
using cpu::KeySpan;

class CpuForward : public OnIsa {
 protected:
  void expect_exact(const Case& c) {
    State state = run(c, workspace_);
    const auto error = first_error(c, state);
    EXPECT_FALSE(error) << *error;
  }
};

INSTANTIATE_TEST_SUITE_P(Isa, CpuForward, testing::ValuesIn(cpu::testable_isas()),
                         [](const auto& isa) { return isa.param; });

TEST_P(CpuForward, AnyHeadDims) {
  uint64_t seed = 1;
  for (const auto& [dim_qk, dim_v] : std::vector<std::pair<int, int>>{{1, 1},
                                                                      {3, 5},
                                                                      {8, 8},
                                                                      {20, 12},
                                                                      {64, 64},
                                                                      {80, 96},
                                                                      {128, 128},
                                                                      {192, 128},
                                                                      {100, 256},
                                                                      {256, 17}}) {
    SCOPED_TRACE(fmt::format("dims {} {}", dim_qk, dim_v));
    Case c(shape_of(61, 301, 2, 1, dim_qk, dim_v), seed++);
    expect_exact(c);
    c.make_causal(240);
    expect_exact(c);
  }
}

TEST_P(CpuForward, RaggedSizes) {
  uint64_t seed = 50;
  for (const int64_t q_rows : {1, 2, 7, 8, 9, 23, 24, 25, 47, 48, 49, 97}) {
    for (const int64_t kv_rows : {1, 3, 4, 255, 256, 257, 515}) {
      SCOPED_TRACE(fmt::format("{} rows {} keys", q_rows, kv_rows));
      expect_exact(Case(shape_of(q_rows, kv_rows, 1, 1, 16, 12), seed++));
    }
  }
}

TEST_P(CpuForward, RandomShapesLayoutsSpansAndDtypes) {
  std::mt19937_64 random(7);
  const auto pick = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  for (int i = 0; i < 40; ++i) {
    const int kv_heads = static_cast<int>(pick(1, 3));
    const int group = static_cast<int>(pick(1, 4));
    const auto dtype = static_cast<DType>(pick(0, 2));
    const AttendShape shape =
        test::shape_of(pick(1, 90), pick(1, 600), kv_heads * group, kv_heads,
                       static_cast<int>(pick(1, 70)), static_cast<int>(pick(1, 70)), dtype);
    const auto layout = pick(0, 1) == 0 ? Tensor::Layout::kTokenMajor : Tensor::Layout::kHeadMajor;
    Case c(shape, random(), 1.0, layout, pick(0, 5));
    const int64_t mask = pick(0, 2);
    if (mask == 1) c.make_causal(pick(-20, 500));
    if (mask == 2) c.make_random_spans(random());
    SCOPED_TRACE(fmt::format("case {} mask {} dtype {}", i, mask, static_cast<int>(dtype)));
    expect_exact(c);
  }
}

TEST_P(CpuForward, LargeLogitsGiveNoNan) {
  Case c(shape_of(30, 300, 1, 1, 32, 32), 3, 100.0);  // scores of tens of thousands
  State state = run(c, workspace_);
  for (const float u : state.u) ASSERT_TRUE(std::isfinite(u));
  for (const float l : state.l) ASSERT_TRUE(l >= 0.99F);
  expect_exact(Case(shape_of(30, 300, 1, 1, 32, 32), 3, 8.0));
}

TEST_P(CpuForward, OverflowingScoresGiveNoNan) {
  Case c(shape_of(26, 40, 1, 1, 8, 8), 4);
  for (int64_t row = 0; row < 26; ++row) {
    for (int64_t d = 0; d < 8; ++d) c.q.set(row, 0, d, 3e30);
  }
  for (int64_t key = 0; key < 40; ++key) {
    for (int64_t d = 0; d < 8; ++d) c.k.set(key, 0, d, key % 3 == 0 ? 3e30 : -3e30);
  }
  State state = run(c, workspace_);
  for (const float u : state.u) ASSERT_FALSE(std::isnan(u));
  for (const float m : state.m) ASSERT_FALSE(std::isnan(m));
  for (const float l : state.l) ASSERT_FALSE(std::isnan(l));
}

TEST_P(CpuForward, ScaleOfAnySign) {
  for (const float scale : {0.0F, -0.3F, 2.5F, -1e-30F}) {
    SCOPED_TRACE(scale);
    AttendShape shape = shape_of(27, 70, 2, 2, 24, 24);
    shape.scale = scale;
    expect_exact(Case(shape, 11));
  }
}

TEST_P(CpuForward, RowsThatSeeNothingStayExactlyEmpty) {
  Case c(shape_of(70, 600, 1, 1, 32, 20), 5);
  c.make_causal(-35);  // rows 0..34 see nothing
  State state = run(c, workspace_);
  for (size_t row = 0; row < 35; ++row) {
    EXPECT_EQ(state.m[row], -std::numeric_limits<float>::infinity());
    EXPECT_EQ(state.l[row], 0.0F);
    for (size_t d = 0; d < 20; ++d) EXPECT_EQ(state.u[row * 20 + d], 0.0F);
  }
  expect_exact(c);
}

TEST_P(CpuForward, NoKeysChangeNothing) {
  const Case c(shape_of(5, 0, 1, 1, 8, 8), 6);
  EXPECT_EQ(run(c, workspace_), State(c.shape));
}

// Continuing over blocks that end on multiples of key_block() repeats the operations of one call.
TEST_P(CpuForward, ContinuingLosesNothing) {
  const AttendShape shape = shape_of(50, 1024, 2, 1, 64, 64);
  Case c(shape, 8);
  c.make_causal(974);
  State whole = run(c, workspace_);
  for (const int64_t step : {cpu::key_block(64, 64), 100}) {
    State state(shape);
    for (int64_t begin = 0; begin < shape.kv_rows; begin += step) {
      AttendShape part = shape;
      part.kv_rows = std::min(step, shape.kv_rows - begin);
      std::vector<KeySpan> spans = c.spans;
      for (KeySpan& span : spans) {
        const auto local = [&](int64_t key) {
          return static_cast<int32_t>(std::clamp<int64_t>(key - begin, 0, part.kv_rows));
        };
        span = {local(span.begin), local(span.end)};
      }
      cpu::attend(part, c.q.view(), rows_from(shape.dtype, c.k.view(), begin),
                  rows_from(shape.dtype, c.v.view(), begin), spans.data(), state.view(),
                  workspace_);
    }
    if (step != 100) {
      EXPECT_TRUE(state == whole);
    }
    const auto error = first_error(c, state);
    EXPECT_FALSE(error) << *error;
  }
}

// A row alone, in any place and beside any other rows, has the same bits.
TEST_P(CpuForward, RowBitsDoNotDependOnOtherRows) {
  const AttendShape shape = shape_of(130, 700, 2, 1, 40, 36);
  Case c(shape, 9);
  c.make_causal(570);
  const State whole = run(c, workspace_);
  for (const int64_t first : {0, 1, 5, 64, 121, 129}) {
    for (const int64_t rows : {1, 3, 9, 30}) {
      if (first + rows > shape.q_rows) continue;
      AttendShape part = shape;
      part.q_rows = rows;
      State state(part);
      cpu::attend(part, rows_from(shape.dtype, c.q.view(), first), c.k.view(), c.v.view(),
                  c.spans.data() + first, state.view(), workspace_);
      for (int64_t head = 0; head < 2; ++head) {
        const auto n = static_cast<size_t>(rows * 36) * sizeof(float);
        ASSERT_EQ(std::memcmp(state.u.data() + head * rows * 36,
                              whole.u.data() + (head * 130 + first) * 36, n),
                  0)
            << first << " " << rows;
        ASSERT_EQ(std::memcmp(state.l.data() + head * rows, whole.l.data() + head * 130 + first,
                              static_cast<size_t>(rows) * sizeof(float)),
                  0);
      }
    }
  }
}

TEST_P(CpuForward, AllocatesNothingOnceReserved) {
  for (const int64_t q_rows : {1, 5, 24, 100, 3000}) {
    const Case c(shape_of(q_rows, 300, 6, 2, 33, 31), 10);
    cpu::Workspace workspace;
    const int64_t most = cpu::workspace_bytes(c.shape, workspace.caches());
    workspace.reserve(most);
    const int64_t before = workspace.capacity_bytes();
    run(c, workspace);
    EXPECT_EQ(workspace.capacity_bytes(), before) << q_rows;
  }
}

// All vector instruction sets add in the same order; those with fused multiply-add agree exactly.
TEST(CpuIsas, AgreeWithinTheBoundAndOftenExactly) {
  Case c(shape_of(60, 500, 1, 1, 64, 64), 12);
  cpu::Workspace workspace;
  std::vector<State> fused;
  for (const std::string& isa : cpu::runnable_isas()) {
    const ScopedIsa scoped(isa);
    State state = run(c, workspace);
    const auto error = first_error(c, state);
    EXPECT_FALSE(error) << isa << ": " << *error;
    if (isa.starts_with("AVX")) fused.push_back(state);
  }
  for (const State& state : fused) EXPECT_TRUE(state == fused.front());
}

TEST(CpuIsas, AnUnknownOneIsRefused) { EXPECT_THROW(cpu::force_isa("AVX9"), Error); }

TEST(CpuShape, BadOnesAreRefused) {
  const AttendShape good = shape_of(4, 4, 4, 2, 8, 8);
  cpu::check_shape(good);
  const auto refused = [&](auto change) {
    AttendShape shape = good;
    change(shape);
    EXPECT_THROW(cpu::check_shape(shape), Error);
  };
  refused([](AttendShape& s) { s.q_rows = -1; });
  refused([](AttendShape& s) { s.kv_rows = int64_t{1} << 31; });
  refused([](AttendShape& s) { s.kv_heads = 3; });
  refused([](AttendShape& s) { s.kv_heads = 0; });
  refused([](AttendShape& s) { s.dim_qk = 257; });
  refused([](AttendShape& s) { s.dim_v = 0; });
  refused([](AttendShape& s) { s.scale = std::numeric_limits<float>::infinity(); });
}

}  // namespace
}  // namespace ring::test
