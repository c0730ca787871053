// Where the values of Q, K, V and dO come from, by global token position, and how they are stored.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/dtype.h"

namespace ring {

/// The gradient of the output, dO, is an input of the backward pass.
enum class Tensor { kQuery, kKey, kValue, kOutputGradient };

/// Gives values by global position, so that every partition sees the same data. Called from
/// several threads at once.
class DataSource {
 public:
  virtual ~DataSource() = default;
  /// Fills `values` (head, dim) of one token of one batch element.
  virtual void fill(Tensor tensor, int64_t batch, int64_t position,
                    std::span<float> values) const = 0;
};

/// Values of mean 0 and variance 1 from a counter-based generator: each is the sum of four uniform
/// 16-bit numbers, close to normal and never beyond 3.5.
class SeededData final : public DataSource {
 public:
  explicit SeededData(uint64_t seed) : seed_(seed) {}
  void fill(Tensor tensor, int64_t batch, int64_t position, std::span<float> values) const override;

 private:
  uint64_t seed_;
};

/// Stores `values` at `to` in `dtype`, rounding to nearest even.
void store_elements(DType dtype, std::span<const float> values, std::byte* to);
/// The stored value number `index` of the elements at `from`.
float load_element(DType dtype, const std::byte* from, int64_t index);

}  // namespace ring
