// The vector exp2 against the C library in double precision.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/cpu/vector_math.h"
#include "tests/kernels/cpu_support.h"

namespace ring::test {
namespace {

class CpuExp2 : public OnIsa {};

INSTANTIATE_TEST_SUITE_P(Isa, CpuExp2, testing::ValuesIn(cpu::runnable_isas()),
                         [](const auto& isa) { return isa.param; });

TEST_P(CpuExp2, WithinTwoUlp) {
  std::vector<float> in;
  // Every 97th float from -100 to -2^-30.
  const auto first = std::bit_cast<uint32_t>(-0x1p-30F);
  const auto last = std::bit_cast<uint32_t>(-100.0F);
  for (uint32_t bits = first; bits <= last; bits += 97) in.push_back(std::bit_cast<float>(bits));
  std::vector<float> out(in.size());
  cpu::exp2_clamped(in.data(), static_cast<int64_t>(in.size()), out.data());
  double worst_relative = 0.0;
  double worst_ulp = 0.0;
  for (size_t i = 0; i < in.size(); ++i) {
    const double want = std::exp2(static_cast<double>(in[i]));
    const double error = std::fabs(out[i] - want);
    const double ulp = std::ldexp(1.0, std::ilogb(want) - 23);
    worst_relative = std::max(worst_relative, error / want);
    worst_ulp = std::max(worst_ulp, error / ulp);
  }
  EXPECT_LE(worst_relative, 3e-7);
  EXPECT_LE(worst_ulp, 2.0);
}

TEST_P(CpuExp2, ExactWhereItMatters) {
  const float inf = std::numeric_limits<float>::infinity();
  std::vector<float> in = {0.0F, -0.0F, 1.0F, inf, -1.0F, -99.0F, -100.0F, -inf};
  cpu::exp2_clamped(in.data(), static_cast<int64_t>(in.size()), in.data());
  EXPECT_EQ(in, (std::vector<float>{1, 1, 1, 1, 0.5F, 0x1p-99F, 0x1p-100F, 0x1p-100F}));
}

}  // namespace
}  // namespace ring::test
