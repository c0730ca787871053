// The backward block kernel on every instruction set against the fp64 oracle.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "kernels/cpu/attend_backward.h"
#include "kernels/cpu/parallel.h"
#include "tests/kernels/backward_support.h"
#include "tests/kernels/cpu_support.h"

namespace ring::test {
namespace {

using cpu::AttendShape;

class CpuBackward : public OnIsa {
 protected:
  void expect_exact(const Backward& b) {
    Sums sums(b.c.shape);
    cpu::attend_backward(b.c.shape, b.input(), b.c.span_data(), sums.view(), workspace_);
    const reference::Gradients want = reference::attend_backward(b.c.oracle(), b.d_out.oracle());
    const bool pairs = cpu::uses_bf16_products(b.c.shape.dtype);
    const Bounds bounds = bounds_of(b, pairs ? 0x1p-8 : 0.0);
    for (const auto& error : {first_difference("dq", sums.dq, want.dq, bounds.dq),
                              first_difference("dk", sums.dk, want.dk, bounds.dk),
                              first_difference("dv", sums.dv, want.dv, bounds.dv)}) {
      EXPECT_FALSE(error) << *error;
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Isa, CpuBackward, testing::ValuesIn(cpu::testable_isas()),
                         [](const auto& isa) { return isa.param; });

TEST_P(CpuBackward, AnyHeadDims) {
  uint64_t seed = 1;
  for (const auto& [dim_qk, dim_v] :
       std::vector<std::pair<int, int>>{{1, 1}, {3, 5}, {20, 12}, {64, 64}, {80, 96}, {17, 256}}) {
    SCOPED_TRACE(fmt::format("dims {} {}", dim_qk, dim_v));
    expect_exact(Backward(Case(shape_of(30, 70, 2, 1, dim_qk, dim_v), seed), seed, workspace_));
    ++seed;
  }
}

TEST_P(CpuBackward, RandomShapesLayoutsSpansAndDtypes) {
  std::mt19937_64 random(17);
  const auto pick = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  for (int i = 0; i < 20; ++i) {
    const int kv_heads = static_cast<int>(pick(1, 2));
    const int group = static_cast<int>(pick(1, 3));
    const AttendShape shape = test::shape_of(
        pick(1, 130), pick(1, 420), kv_heads * group, kv_heads, static_cast<int>(pick(1, 34)),
        static_cast<int>(pick(1, 34)), static_cast<DType>(pick(0, 2)));
    const auto layout = pick(0, 1) == 0 ? Tensor::Layout::kTokenMajor : Tensor::Layout::kHeadMajor;
    Case c(shape, random(), 1.0, layout, pick(0, 5));
    const int64_t mask = pick(0, 2);
    if (mask == 1) c.make_causal(pick(-20, 300));
    if (mask == 2) c.make_random_spans(random());
    SCOPED_TRACE(fmt::format("case {} mask {}", i, mask));
    expect_exact(Backward(std::move(c), random(), workspace_));
  }
}

TEST_P(CpuBackward, SeveralUnitsAndNegativeScale) {
  AttendShape shape = shape_of(620, 800, 1, 1, 8, 8);
  shape.scale = -shape.scale;
  Case c(shape, 5);
  c.make_causal(180);
  expect_exact(Backward(std::move(c), 6, workspace_));
}

// The sums are added to what is there, and rows that see nothing add exactly nothing.
TEST_P(CpuBackward, AddsToWhatIsThere) {
  Case c(shape_of(40, 50, 1, 1, 8, 8), 7);
  c.make_causal(-20);
  const Backward b(std::move(c), 8, workspace_);
  Sums from_zero(b.c.shape);
  Sums from_eight(b.c.shape, 8.0F);
  cpu::attend_backward(b.c.shape, b.input(), b.c.span_data(), from_zero.view(), workspace_);
  cpu::attend_backward(b.c.shape, b.input(), b.c.span_data(), from_eight.view(), workspace_);
  for (size_t i = 0; i < from_zero.dq.size(); ++i) {
    if (i < 20 * 8) {
      EXPECT_EQ(from_eight.dq[i], 8.0F);
    }
    EXPECT_NEAR(from_eight.dq[i], 8.0F + from_zero.dq[i], 4e-6);
  }
}

TEST_P(CpuBackward, BlocksAddUpToTheWhole) {
  const Backward b(Case(shape_of(50, 500, 2, 1, 16, 16), 9), 10, workspace_);
  Sums whole(b.c.shape);
  cpu::attend_backward(b.c.shape, b.input(), nullptr, whole.view(), workspace_);
  Sums parts(b.c.shape);
  for (const int64_t begin : {0, 123, 300}) {
    const int64_t end = begin == 0 ? 123 : begin == 123 ? 300 : 500;
    AttendShape part = b.c.shape;
    part.kv_rows = end - begin;
    cpu::BackwardInput input = b.input();
    input.k = rows_from(part.dtype, input.k, begin);
    input.v = rows_from(part.dtype, input.v, begin);
    cpu::BackwardOutput output = parts.view();
    output.dk += begin * 16;
    output.dv += begin * 16;
    cpu::attend_backward(part, input, nullptr, output, workspace_);
  }
  EXPECT_EQ(parts.dk, whole.dk);
  EXPECT_EQ(parts.dv, whole.dv);
  for (size_t i = 0; i < whole.dq.size(); ++i) EXPECT_NEAR(parts.dq[i], whole.dq[i], 1e-5);
}

TEST(CpuBackwardTeam, HasTheBitsOfOneThread) {
  cpu::Workspace workspace;
  Case c(shape_of(1300, 900, 2, 2, 12, 12), 11);
  c.make_causal(-300);
  const Backward b(std::move(c), 12, workspace);
  Sums one(b.c.shape);
  cpu::attend_backward(b.c.shape, b.input(), b.c.span_data(), one.view(), workspace);
  for (const int threads : {1, 2, 5}) {
    cpu::ThreadTeam team(threads);
    cpu::ParallelKernels kernels(team, {});
    Sums many(b.c.shape);
    kernels.attend_backward(b.c.shape, b.input(), b.c.span_data(), many.view());
    EXPECT_TRUE(many == one) << threads;
  }
}

TEST(CpuBackwardScratch, StaysWithinItsBound) {
  for (const int64_t q_rows : {1, 5, 24, 100, 3000}) {
    const AttendShape shape = shape_of(q_rows, 300, 6, 2, 33, 31);
    cpu::Workspace forward;
    const Backward b(Case(shape, 13), 14, forward);
    cpu::Workspace workspace;
    workspace.reserve(cpu::backward_workspace_bytes(shape));
    const int64_t before = workspace.capacity_bytes();
    Sums sums(shape);
    cpu::attend_backward(shape, b.input(), nullptr, sums.view(), workspace);
    EXPECT_EQ(workspace.capacity_bytes(), before) << q_rows;
  }
}

}  // namespace
}  // namespace ring::test
