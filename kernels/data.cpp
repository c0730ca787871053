#include "kernels/data.h"

#include <bit>
#include <cmath>
#include <cstring>

namespace ring {
namespace {

// Finalizer of the splitmix64 generator (Steele, Lea, Flood 2014).
uint64_t mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15U;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31);
}

float near_normal(uint64_t bits) {
  const int64_t sum = static_cast<int64_t>((bits & 0xFFFFU) + ((bits >> 16) & 0xFFFFU) +
                                           ((bits >> 32) & 0xFFFFU) + (bits >> 48));
  // Four uniform 16-bit numbers: mean 2 * 65535, variance 4 * (65536^2 - 1) / 12.
  constexpr float kDeviation = 37837.23F;
  return static_cast<float>(sum - 2 * 65535) / kDeviation;
}

uint16_t bf16_bits(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return static_cast<uint16_t>((bits >> 16) | 0x40U);
  return static_cast<uint16_t>((bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16);
}

// Scaling by powers of two is exact, so std::nearbyint does the only rounding.
uint16_t f16_bits(float value) {
  const auto sign = static_cast<uint16_t>(std::signbit(value) ? 0x8000U : 0U);
  const float magnitude = std::fabs(value);
  if (std::isnan(value)) return static_cast<uint16_t>(sign | 0x7E00U);
  if (magnitude >= 65520.0F) return static_cast<uint16_t>(sign | 0x7C00U);
  if (magnitude < 0x1p-14F) {
    return static_cast<uint16_t>(sign | static_cast<uint16_t>(std::nearbyint(magnitude * 0x1p24F)));
  }
  int exponent = 0;
  const float fraction = std::frexp(magnitude, &exponent);  // In [0.5, 1).
  const auto mantissa = static_cast<uint32_t>(std::nearbyint(fraction * 2048.0F));
  // A mantissa that rounds up to 2048 carries into the exponent by plain addition.
  return static_cast<uint16_t>(sign + (static_cast<uint32_t>(exponent + 14) << 10) + mantissa -
                               1024U);
}

float f16_value(uint16_t bits) {
  const int exponent = (bits >> 10) & 0x1F;
  const auto mantissa = static_cast<float>(bits & 0x3FFU);
  float magnitude = std::ldexp(mantissa, -24);
  if (exponent == 31) magnitude = mantissa == 0.0F ? INFINITY : NAN;
  if (exponent > 0 && exponent < 31) magnitude = std::ldexp(1024.0F + mantissa, exponent - 25);
  return (bits & 0x8000U) != 0 ? -magnitude : magnitude;
}

}  // namespace

void SeededData::fill(Tensor tensor, int64_t batch, int64_t position,
                      std::span<float> values) const {
  const uint64_t row =
      mix(mix(mix(seed_ ^ (static_cast<uint64_t>(tensor) + 1)) ^ static_cast<uint64_t>(batch)) ^
          static_cast<uint64_t>(position));
  for (size_t i = 0; i < values.size(); ++i) values[i] = near_normal(mix(row + i));
}

void store_elements(DType dtype, std::span<const float> values, std::byte* to) {
  if (dtype == DType::kF32) {
    std::memcpy(to, values.data(), values.size_bytes());
    return;
  }
  for (size_t i = 0; i < values.size(); ++i) {
    const uint16_t bits = dtype == DType::kBF16 ? bf16_bits(values[i]) : f16_bits(values[i]);
    std::memcpy(to + 2 * i, &bits, 2);
  }
}

float load_element(DType dtype, const std::byte* from, int64_t index) {
  const std::byte* const at = from + index * size_bytes(dtype);
  if (dtype == DType::kF32) {
    float value = 0;
    std::memcpy(&value, at, 4);
    return value;
  }
  uint16_t bits = 0;
  std::memcpy(&bits, at, 2);
  if (dtype == DType::kBF16) return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
  return f16_value(bits);
}

}  // namespace ring
