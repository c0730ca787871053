// Whether a result is called right or wrong.
#include "kernels/verify.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/kernels/executor_fixture.h"

namespace ring {
namespace {

using testing_support::FunctionData;

Verification verified(const Problem& problem, const Tuning& tuning, const DataSource& data,
                      const DataSource& checked) {
  const RingProgram program = plan(problem, tuning);
  CpuExecutor executor(program, data);
  executor.run();
  return verify_rows(program, checked, executor, 64);
}

Problem few_keys(DType dtype, const Mask& mask) {
  Problem problem;
  problem.heads = 4;
  problem.kv_heads = 2;
  problem.head_dim = 8;
  problem.head_dim_v = 24;
  problem.dtype = dtype;
  problem.mask = mask;
  problem.pass = Pass::kForwardBackward;
  return problem;
}

// dQ of a row that sees few keys is a small difference of large terms, which the rounding of the
// output to 16 bits moves by more than a rounding of dQ itself.
TEST(Verify, GradientsOfRowsWithFewKeysAreRight) {
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    for (const Mask& mask : {Mask::causal(2), Mask::prefix_lm(3, 2), Mask::sliding_window(9, 1),
                             Mask::documents({0, 4, 7, 9}, true)}) {
      for (uint64_t seed = 0; seed < 8; ++seed) {
        const SeededData data(seed);
        const Verification result = verified(few_keys(dtype, mask), {}, data, data);
        EXPECT_TRUE(result.is_right())
            << name(dtype) << " " << mask.text() << " " << seed << ": " << result.text();
      }
    }
  }
}

/// As of a seed, but one element of one tensor at position 5 is off by a half.
FunctionData off_by_half(Tensor which, uint64_t seed) {
  return FunctionData([which, seed](Tensor tensor, int64_t batch, int64_t position, int64_t index) {
    std::vector<float> row(static_cast<size_t>(index) + 1);
    SeededData(seed).fill(tensor, batch, position, row);
    return row.back() + (tensor == which && position == 5 && index == 3 ? 0.5F : 0.0F);
  });
}

TEST(Verify, AnErrorInOneElementIsSeen) {
  const Problem problem = few_keys(DType::kBF16, Mask::causal(20));
  const SeededData data(7);
  const auto check = [&](Tensor tensor) {
    return verified(problem, {}, off_by_half(tensor, 7), data);
  };
  EXPECT_GT(check(Tensor::kValue).error, 0x1p-8);
  EXPECT_GT(check(Tensor::kKey).lse_error, 0x1p-8);
  EXPECT_GT(check(Tensor::kQuery).dq_error, 0x1p-8);
  const Verification gradients = check(Tensor::kOutputGradient);
  EXPECT_LE(gradients.error, 0x1p-8);
  EXPECT_GT(gradients.dq_error, 0x1p-8);
  EXPECT_GT(gradients.dk_error, 0x1p-8);
  EXPECT_GT(gradients.dv_error, 0x1p-8);
}

}  // namespace
}  // namespace ring
