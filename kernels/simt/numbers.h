// 16-bit floating point numbers on the host, bit by bit as the conversions of a GPU make them.
#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/simt/types.h"

namespace ring::simt {

inline uint32_t bits_of(float value) {
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}
inline float float_of(uint32_t bits) {
  float value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

inline float widen(Bf16, uint16_t bits) { return float_of(static_cast<uint32_t>(bits) << 16); }

inline float widen(F16, uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000U) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1fU, fraction = bits & 0x3ffU;
  if (exponent == 0) {  // fraction * 2^-24
    const float value = static_cast<float>(fraction) * 0x1p-24F;
    return float_of(sign | bits_of(value));
  }
  const uint32_t wide = exponent == 31 ? 255U : exponent + 112U;
  return float_of(sign | (wide << 23) | (fraction << 13));
}

/// Nearest, ties to even; NaN stays NaN.
inline uint16_t narrow(Bf16, float value) {
  const uint32_t bits = bits_of(value);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return 0x7fff;
  return static_cast<uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}

inline uint16_t narrow(F16, float value) {
  const uint32_t bits = bits_of(value);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000U);
  const uint32_t magnitude = bits & 0x7fffffffU;
  if (magnitude > 0x7f800000U) return 0x7fff;
  if (magnitude >= 0x477ff000U) return static_cast<uint16_t>(sign | 0x7c00U);  // Rounds past 65504.
  if (magnitude < 0x38800000U) {  // Below 2^-14: multiples of 2^-24, rounded by the addition.
    const float sum = float_of(magnitude) + 0.5F;
    return static_cast<uint16_t>(sign | (bits_of(sum) - bits_of(0.5F)));
  }
  const uint32_t rounded = magnitude + 0xfffU + ((magnitude >> 13) & 1U);
  return static_cast<uint16_t>(sign | ((rounded - (112U << 23)) >> 13));
}

}  // namespace ring::simt
