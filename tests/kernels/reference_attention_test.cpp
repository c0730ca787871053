// The oracle itself, against closed forms and finite differences.
#include "kernels/reference/attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace ring::reference {
namespace {

// One head, contiguous fp32.
struct Small {
  int64_t rows, keys;
  int dim_qk, dim_v;
  std::vector<float> q, k, v;

  Small(int64_t r, int64_t n, int dq, int dv)
      : rows(r),
        keys(n),
        dim_qk(dq),
        dim_v(dv),
        q(static_cast<size_t>(r * dq)),
        k(static_cast<size_t>(n * dq)),
        v(static_cast<size_t>(n * dv)) {
    std::mt19937_64 random(3);
    std::normal_distribution<float> normal;
    for (auto* all : {&q, &k, &v}) {
      for (float& x : *all) x = normal(random);
    }
  }
  Problem problem() const {
    Problem p;
    p.q_rows = rows;
    p.kv_rows = keys;
    p.dim_qk = dim_qk;
    p.dim_v = dim_v;
    p.scale = 0.7;
    p.q = {q.data(), DType::kF32, dim_qk, 0};
    p.k = {k.data(), DType::kF32, dim_qk, 0};
    p.v = {v.data(), DType::kF32, dim_v, 0};
    return p;
  }
};

TEST(ReferenceAttention, ZeroKeysGiveTheMeanOfWhatIsSeen) {
  Small s(4, 4, 3, 2);
  std::fill(s.k.begin(), s.k.end(), 0.0F);
  Problem p = s.problem();
  p.visible = [](int64_t row, int64_t key) { return key <= row; };
  const Output o = attend(p);
  double mean = 0.0;
  for (size_t row = 0; row < 4; ++row) {
    mean += s.v[row * 2];
    EXPECT_NEAR(o.out[row * 2], mean / static_cast<double>(row + 1), 1e-12);
    EXPECT_NEAR(o.lse[row], std::log(static_cast<double>(row + 1)), 1e-12);
  }
}

TEST(ReferenceAttention, TwoKeysByHand) {
  Small s(1, 2, 1, 1);
  s.q = {1.0F};
  s.k = {0.0F, 1.0F};
  s.v = {0.0F, 1.0F};
  Problem p = s.problem();
  p.scale = 1.0;
  const Output o = attend(p);
  EXPECT_NEAR(o.out[0], 0.731059, 1e-6);
  EXPECT_NEAR(o.lse[0], 1.313262, 1e-6);
}

TEST(ReferenceAttention, ARowThatSeesNothing) {
  const Small s(2, 3, 2, 2);
  Problem p = s.problem();
  p.visible = [](int64_t row, int64_t) { return row == 1; };
  const Output o = attend(p);
  EXPECT_EQ(o.out[0], 0.0);
  EXPECT_EQ(o.lse[0], -std::numeric_limits<double>::infinity());
  const std::vector<int64_t> second = {1};
  const Output one = attend_rows(p, second);
  EXPECT_EQ(one.out, std::vector<double>(o.out.begin() + 2, o.out.end()));
}

TEST(ReferenceAttention, GradientsMatchFiniteDifferences) {
  Small s(3, 4, 3, 2);
  Small g(3, 1, 2, 1);  // g.q is d_out: 3 rows of 2
  const Tensor d_out{g.q.data(), DType::kF32, 2, 0};
  const auto visible = [](int64_t row, int64_t key) { return key <= row + 1; };
  const auto loss = [&] {
    Problem p = s.problem();
    p.visible = visible;
    const Output o = attend(p);
    double sum = 0.0;
    for (size_t i = 0; i < o.out.size(); ++i) sum += o.out[i] * g.q[i];
    return sum;
  };
  Problem p = s.problem();
  p.visible = visible;
  const Gradients all = attend_backward(p, d_out);
  const auto expect_slopes = [&](std::vector<float>& values, const std::vector<double>& want) {
    for (size_t i = 0; i < values.size(); ++i) {
      const float keep = values[i];
      constexpr float kStep = 0x1p-10F;
      values[i] = keep + kStep;
      const double up = loss();
      values[i] = keep - kStep;
      const double down = loss();
      const double width = static_cast<double>(keep + kStep) - static_cast<double>(keep - kStep);
      values[i] = keep;
      EXPECT_NEAR((up - down) / width, want[i], 2e-6) << i;  // third derivative times step^2 / 6
    }
  };
  expect_slopes(s.q, all.dq);
  expect_slopes(s.k, all.dk);
  expect_slopes(s.v, all.dv);
  const std::vector<int64_t> rows = {2};
  const std::vector<double> dq = query_gradients(p, d_out, rows);
  EXPECT_EQ(dq, std::vector<double>(all.dq.begin() + 6, all.dq.end()));
  const Output forward = attend(p);
  std::vector<double> delta(3, 0.0);
  for (size_t i = 0; i < forward.out.size(); ++i) {
    delta[i / 2] += forward.out[i] * static_cast<double>(g.q[i]);
  }
  const std::vector<int64_t> keys = {1, 3};
  const Gradients some = key_gradients(p, d_out, forward.lse, delta, keys);
  for (size_t j = 0; j < 2; ++j) {
    const size_t key = j == 0 ? 1 : 3;
    for (size_t d = 0; d < 3; ++d) EXPECT_NEAR(some.dk[j * 3 + d], all.dk[key * 3 + d], 1e-12);
    for (size_t d = 0; d < 2; ++d) EXPECT_NEAR(some.dv[j * 2 + d], all.dv[key * 2 + d], 1e-12);
  }
}

TEST(ReferenceHalf, KnownValues) {
  EXPECT_EQ(f16_value(0x3c00), 1.0);
  EXPECT_EQ(f16_value(0x7bff), 65504.0);
  EXPECT_EQ(f16_value(0x0001), 0x1p-24);
  EXPECT_EQ(f16_value(0xc000), -2.0);
  EXPECT_EQ(bf16_value(0x3f80), 1.0);
  EXPECT_EQ(bf16_value(0x4049), 3.140625);
  EXPECT_EQ(f16_bits(65519.9), 0x7bff);
  EXPECT_EQ(f16_bits(65520.0), 0x7c00);
  EXPECT_EQ(f16_bits(0x1p-25), 0x0000);  // tie to even
  EXPECT_EQ(f16_bits(0x1.8p-24), 0x0002);
  EXPECT_EQ(bf16_bits(1.0 + 0x1p-8), 0x3f80);  // tie to even
  EXPECT_EQ(bf16_bits(1.0 + 0x1.8p-7), 0x3f82);
}

TEST(ReferenceHalf, EveryNumberComesBack) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    if (!std::isnan(f16_value(half))) {
      ASSERT_EQ(f16_bits(f16_value(half)), half);
    }
    if (!std::isnan(bf16_value(half))) {
      ASSERT_EQ(bf16_bits(bf16_value(half)), half);
    }
  }
}

}  // namespace
}  // namespace ring::reference
