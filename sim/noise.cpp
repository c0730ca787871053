#include "sim/noise.h"

#include <cmath>
#include <numbers>

namespace ring {

namespace {

/// splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
uint64_t mix(uint64_t value) {
  value += 0x9e3779b97f4a7c15u;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

/// In (0, 1].
double unit(uint64_t bits) { return static_cast<double>((bits >> 11) + 1) * 0x1p-53; }

/// Standard normal by Box and Muller.
double normal(uint64_t key) {
  const double radius = std::sqrt(-2 * std::log(unit(mix(key))));
  return radius * std::cos(2 * std::numbers::pi * unit(mix(key ^ 0xd1b54a32d192ed03u)));
}

}  // namespace

NoiseFactors::NoiseFactors(const Noise& noise, uint64_t seed)
    : is_on_(noise.per_op > 0 || noise.per_run > 0),
      seed_(mix(seed)),
      per_op_(noise.per_op),
      of_run_(std::exp(noise.per_run * normal(mix(seed ^ 0x5851f42d4c957f2du)))) {}

double NoiseFactors::of_op(int rank, int64_t index) const {
  if (per_op_ == 0) return of_run_;
  const uint64_t place = mix(seed_ ^ static_cast<uint64_t>(rank)) + static_cast<uint64_t>(index);
  return of_run_ * std::exp(per_op_ * normal(mix(place)));
}

}  // namespace ring
