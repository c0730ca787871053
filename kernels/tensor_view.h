// TensorView: a tensor that a rank holds, and where an op finds it: in its own shard or a buffer.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/payload.h"
#include "core/ring_program.h"

namespace ring {

/// Rows of a (row, batch, head, dim) tensor.
struct TensorView {
  std::byte* data = nullptr;
  HeadRange heads;  ///< That the tensor has.
  int64_t dim = 0;

  /// Elements before this head of a row.
  int64_t at(int64_t row, int64_t of_batch, int64_t batch, int64_t head) const {
    return ((row * batch + of_batch) * heads.count() + head - heads.begin) * dim;
  }
};

/// Memory that a payload may lie in: of the own shard, or of a buffer in the layouts that KvBuffer
/// (executor_storage.h) says.
struct TensorPlaces {
  std::byte *q = nullptr, *out = nullptr, *d_out = nullptr;  ///< Of the own shard.
  std::byte *k = nullptr, *v = nullptr;                      ///< Of the own shard or the buffer.
  Payload held = Payload::kKeyValue;                         ///< By the buffer.
  HeadRange buffer_heads = {};                               ///< Query heads of a shaped buffer.
  bool is_home = false, is_shaped = false;
};

/// Q, output, dO, K (part 0) or V (part 1); no gradients and no states.
TensorView tensor_at(const TensorPlaces& places, const Problem& problem, Payload payload, int part);

}  // namespace ring
