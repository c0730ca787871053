// 16-bit floating point, bit by bit from IEEE 754 and the bfloat16 definition.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/reference/attention.h"

namespace ring::reference {
namespace {

// A sign, `exponent_bits` with the usual bias, and `fraction_bits`.
struct Format {
  int exponent_bits;
  int fraction_bits;
  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  int top_exponent() const { return (1 << exponent_bits) - 1; }
};
constexpr Format kBf16{8, 7};
constexpr Format kF16{5, 10};

double decode(const Format& format, unsigned bits) {
  const unsigned fraction = bits & ((1U << format.fraction_bits) - 1);
  const int exponent = static_cast<int>(bits >> format.fraction_bits) & format.top_exponent();
  const double sign = (bits >> 15U) != 0 ? -1.0 : 1.0;
  if (exponent == format.top_exponent()) {
    return fraction != 0 ? std::numeric_limits<double>::quiet_NaN()
                         : sign * std::numeric_limits<double>::infinity();
  }
  const int shift = (exponent == 0 ? 1 : exponent) - format.bias() - format.fraction_bits;
  const unsigned significand = exponent == 0 ? fraction : fraction + (1U << format.fraction_bits);
  return sign * std::ldexp(static_cast<double>(significand), shift);
}

uint16_t encode(const Format& format, double value) {
  const unsigned sign = std::signbit(value) ? 0x8000U : 0U;
  const unsigned infinity = static_cast<unsigned>(format.top_exponent()) << format.fraction_bits;
  if (std::isnan(value)) return static_cast<uint16_t>(sign | infinity | 1U);
  const double size = std::fabs(value);
  if (size == 0.0) return static_cast<uint16_t>(sign);
  if (std::isinf(value)) return static_cast<uint16_t>(sign | infinity);
  int exponent = 0;
  std::frexp(size, &exponent);  // size in [2^(exponent-1), 2^exponent)
  const int least = 1 - format.bias();
  const int unit = std::max(exponent - 1, least) - format.fraction_bits;
  const double steps = std::nearbyint(std::ldexp(size, -unit));  // ties to even
  if (!(std::ldexp(steps, unit) < std::ldexp(2.0, format.bias()))) {
    return static_cast<uint16_t>(sign | infinity);
  }
  // Exponent field e and fraction add up: a carry out of the fraction raises the exponent.
  const int field = std::max(exponent - 1, least) - least;
  const auto bits = (static_cast<unsigned>(field) << format.fraction_bits) +
                    static_cast<unsigned>(static_cast<int64_t>(steps));
  return static_cast<uint16_t>(sign | bits);
}

}  // namespace

double bf16_value(uint16_t bits) { return decode(kBf16, bits); }
double f16_value(uint16_t bits) { return decode(kF16, bits); }
uint16_t bf16_bits(double value) { return encode(kBf16, value); }
uint16_t f16_bits(double value) { return encode(kF16, value); }

}  // namespace ring::reference
