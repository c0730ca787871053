// Merging and finalising attention states, with the classic mistakes as cases.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "kernels/cpu/attend.h"
#include "tests/kernels/cpu_support.h"

namespace ring::test {
namespace {

constexpr float kEmpty = -std::numeric_limits<float>::infinity();

struct Part {
  float out, lse;
};

Part merged(Part a, Part b) {
  cpu::merge_output(&a.out, &a.lse, &b.out, &b.lse, 1, 1);
  return a;
}

TEST(CpuMergeOutput, LseIsNotASum) {
  const Part both = merged({1.0F, std::log(2.0F)}, {1.0F, std::log(3.0F)});
  EXPECT_NEAR(both.lse, std::log(5.0), 1e-6);
  EXPECT_NEAR(both.out, 1.0, 1e-6);
}

TEST(CpuMergeOutput, EmptySidesChangeNothing) {
  const Part none = merged({0.0F, kEmpty}, {0.0F, kEmpty});
  EXPECT_EQ(none.lse, kEmpty);
  EXPECT_EQ(none.out, 0.0F);
  for (const Part part :
       {merged({0.0F, kEmpty}, {3.0F, 0.5F}), merged({3.0F, 0.5F}, {0.0F, kEmpty})}) {
    EXPECT_EQ(part.lse, 0.5F);
    EXPECT_EQ(part.out, 3.0F);
  }
}

TEST(CpuMergeOutput, LogsAreNatural) {
  const Part both = merged({0.0F, 0.0F}, {1.0F, 1.0F});
  EXPECT_NEAR(both.out, 0.731059, 1e-6);
  EXPECT_NEAR(both.lse, 1.313262, 1e-6);
}

TEST(CpuMergeOutput, FarApartDoesNotOverflow) {
  const Part both = merged({1.0F, -2000.0F}, {5.0F, 3000.0F});
  EXPECT_EQ(both.out, 5.0F);
  EXPECT_EQ(both.lse, 3000.0F);
}

// Random splits of the keys, merged as states and as outputs, equal one call within the bound.
TEST(CpuMergeState, SplitsEqualTheWhole) {
  const cpu::AttendShape shape{37, 210, 2, 1, 24, 19, DType::kF32, 0.2F};
  Case c(shape, 31);
  c.make_causal(150);
  cpu::Workspace workspace;
  State total(shape);
  for (const auto& [begin, end] :
       std::vector<std::pair<int64_t, int64_t>>{{100, 210}, {0, 60}, {60, 100}}) {
    cpu::AttendShape part = shape;
    part.kv_rows = end - begin;
    std::vector<cpu::KeySpan> spans = c.spans;
    for (cpu::KeySpan& span : spans) {
      span = {static_cast<int32_t>(std::max<int64_t>(span.begin - begin, 0)),
              static_cast<int32_t>(std::min<int64_t>(span.end, end) - begin)};
    }
    cpu::ConstView k = c.k.view();
    cpu::ConstView v = c.v.view();
    k.data = static_cast<const float*>(k.data) + begin * k.token_stride;
    v.data = static_cast<const float*>(v.data) + begin * v.token_stride;
    State state(shape);
    cpu::attend(part, c.q.view(), k, v, spans.data(), state.view(), workspace);
    cpu::merge_state(total.view(), state.view(), shape.heads * shape.q_rows, shape.dim_v);
  }
  const auto error = first_error(c, total);
  EXPECT_FALSE(error) << *error;
}

TEST(CpuMergeState, EmptyStatesStayEmpty) {
  const cpu::AttendShape shape{3, 1, 1, 1, 4, 4, DType::kF32, 1.0F};
  State a(shape);
  State b(shape);
  cpu::merge_state(a.view(), b.view(), 3, 4);
  EXPECT_EQ(a, State(shape));
}

// Ties and subnormals on every instruction set. An output is a mean of stored values: it cannot
// overflow.
TEST(CpuFinalize, RoundsToNearestEven) {
  std::mt19937_64 random(41);
  std::uniform_real_distribution<double> exponent(-30.0, 15.9);
  std::vector<float> values;
  for (int i = 0; i < 4096; ++i) values.push_back(static_cast<float>(std::exp2(exponent(random))));
  for (int i = 0; i < 64; ++i) values.push_back(std::ldexp(static_cast<float>(2 * i + 1), -25));
  for (int i = 0; i < 64; ++i) values.push_back(1.0F + static_cast<float>(i) * 0x1p-11F);
  for (int i = 0; i < 64; ++i) values.push_back(-1.0F - static_cast<float>(i) * 0x1p-8F);
  for (const std::string& isa : cpu::runnable_isas()) {
    const ScopedIsa scoped(isa);
    for (const DType dtype : {DType::kBF16, DType::kF16}) {
      for (const float value : values) {
        const cpu::AttendShape shape{1, 1, 1, 1, 1, 1, dtype, 1.0F};
        float u = value;
        float m = 0.0F;
        float l = 1.0F;
        uint16_t out = 0;
        cpu::finalize(shape, {&u, &m, &l}, {&out, 1, 1}, nullptr);
        const uint16_t want =
            dtype == DType::kBF16 ? reference::bf16_bits(value) : reference::f16_bits(value);
        ASSERT_EQ(out, want) << isa << " " << value;
      }
    }
  }
}

}  // namespace
}  // namespace ring::test
