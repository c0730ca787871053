// Executor: something that runs a RingProgram for real and can tell what came out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/timeline.h"
#include "core/units.h"

namespace ring {

/// Prepares a program once and runs it as often as wanted.
class Executor {
 public:
  virtual ~Executor() = default;

  /// Runs the program once and returns what was measured; it stays valid until the next run. After
  /// an interruption it holds the ops that were done, and is_complete is false.
  virtual const Timeline& run() = 0;

  /// Result of the last run for the token at `position` of the sequence: `out` (head, dim_v) as
  /// stored in the model dtype, `lse` (head) in natural log.
  virtual void read_output(int64_t batch, int64_t position, std::span<float> out,
                           std::span<float> lse) const = 0;

  /// Gradients of the last run, fp32: dQ (head, head_dim) of the token; dK (kv_head, head_dim) and
  /// dV (kv_head, head_dim_v). Of a program with a backward pass; an executor that runs none has
  /// none.
  virtual std::span<const float> query_gradients(int64_t, int64_t) const { return {}; }
  virtual std::span<const float> key_gradients(int64_t, int64_t) const { return {}; }
  virtual std::span<const float> value_gradients(int64_t, int64_t) const { return {}; }

  /// Bytes held by a rank: Q, its shard, receive buffers, states and output.
  virtual Bytes storage_bytes(int rank) const = 0;
};

}  // namespace ring
