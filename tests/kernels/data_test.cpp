#include "kernels/data.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/reference/attention.h"

namespace ring {
namespace {

uint16_t stored_bits(DType dtype, float value) {
  std::byte bytes[2];
  store_elements(dtype, {&value, 1}, bytes);
  uint16_t bits = 0;
  std::memcpy(&bits, bytes, 2);
  return bits;
}

double oracle_value(DType dtype, uint16_t bits) {
  return dtype == DType::kBF16 ? reference::bf16_value(bits) : reference::f16_value(bits);
}
uint16_t oracle_bits(DType dtype, double value) {
  return dtype == DType::kBF16 ? reference::bf16_bits(value) : reference::f16_bits(value);
}

// Every finite half number, and between it and the next one the middle and points either side.
void check_rounding(DType dtype) {
  for (uint32_t i = 0; i < 0x10000; ++i) {
    const auto bits = static_cast<uint16_t>(i);
    std::byte bytes[2];
    std::memcpy(bytes, &bits, 2);
    const float value = load_element(dtype, bytes, 0);
    const double exact = oracle_value(dtype, bits);
    if (std::isnan(exact)) {
      EXPECT_TRUE(std::isnan(value));
      continue;
    }
    ASSERT_EQ(static_cast<double>(value), exact) << i;
    ASSERT_EQ(stored_bits(dtype, value), bits) << i;
    const double next = oracle_value(dtype, static_cast<uint16_t>(bits + 1));
    if (!std::isfinite(exact) || !std::isfinite(next)) continue;
    for (const float part : {0.25F, 0.5F, 0.75F}) {
      const float between = value + part * (static_cast<float>(next) - value);
      ASSERT_EQ(stored_bits(dtype, between), oracle_bits(dtype, between)) << between;
    }
  }
}

TEST(Data, Bf16IsRoundedAsTheOracleRoundsIt) { check_rounding(DType::kBF16); }
TEST(Data, Fp16IsRoundedAsTheOracleRoundsIt) { check_rounding(DType::kF16); }

TEST(Data, SeededValuesHaveMeanZeroAndVarianceOne) {
  std::vector<float> values(1 << 16);
  SeededData(1).fill(Tensor::kKey, 0, 3, values);
  double sum = 0, squares = 0;
  for (const float value : values) {
    sum += value;
    squares += static_cast<double>(value) * value;
  }
  // The mean of 65536 has a deviation of 1/256, their variance one of about 1/256 too.
  EXPECT_NEAR(sum / 65536, 0, 5.0 / 256);
  EXPECT_NEAR(squares / 65536, 1, 5.0 / 256);
}

TEST(Data, SeededValuesDifferBySeedTensorBatchAndPosition) {
  const auto row = [](uint64_t seed, Tensor tensor, int64_t batch, int64_t position) {
    std::vector<float> values(8);
    SeededData(seed).fill(tensor, batch, position, values);
    return values;
  };
  const auto base = row(1, Tensor::kQuery, 0, 0);
  EXPECT_EQ(base, row(1, Tensor::kQuery, 0, 0));
  EXPECT_NE(base, row(2, Tensor::kQuery, 0, 0));
  EXPECT_NE(base, row(1, Tensor::kKey, 0, 0));
  EXPECT_NE(base, row(1, Tensor::kQuery, 1, 0));
  EXPECT_NE(base, row(1, Tensor::kQuery, 0, 1));
  EXPECT_NE(row(1, Tensor::kQuery, 0, 1), row(1, Tensor::kQuery, 1, 0));
}

}  // namespace
}  // namespace ring
