// Noise: reproducible random factors, each a function of seed and place and not of order.
#pragma once

#include <cstdint>

#include "core/machine.h"

namespace ring {

/// Factors with a median of 1 whose log is normal. Equal arguments give equal factors, whatever was
/// asked before, so a simulation does not depend on the order of its events.
class NoiseFactors {
 public:
  NoiseFactors() = default;  ///< All factors are 1.
  NoiseFactors(const Noise& noise, uint64_t seed);

  bool is_on() const { return is_on_; }
  double of_run() const { return of_run_; }
  /// Of op `index` of `rank`, that of the run included.
  double of_op(int rank, int64_t index) const;

 private:
  bool is_on_ = false;
  uint64_t seed_ = 0;
  double per_op_ = 0;
  double of_run_ = 1;
};

}  // namespace ring
