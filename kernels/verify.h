// Verify: sampled rows of a result against the fp64 oracle.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/ring_program.h"
#include "kernels/data.h"
#include "kernels/executor.h"

namespace ring {

struct Verification {
  int64_t rows = 0;            ///< Query positions that were checked, with all their heads.
  double error = 0;            ///< RMS of output minus oracle, relative to the RMS of the oracle.
  double tolerance = 0;        ///< What the dtype allows (docs/numerics.md).
  double lse_error = 0;        ///< Largest |lse - oracle|, relative to max(1, |oracle|).
  int64_t worst_position = 0;  ///< Position with the largest error.
  bool has_gradients = false;
  /// As `error`, of dQ, dK and dV at the same positions.
  double dq_error = 0, dk_error = 0, dv_error = 0;
  bool is_right() const {
    return error <= tolerance && lse_error <= tolerance && dq_error <= tolerance &&
           dk_error <= tolerance && dv_error <= tolerance;
  }
  /// "16 rows agree with the oracle, error 4.1e-07 (allowed 4.0e-06)".
  std::string text() const;
};

/// Checks batch element 0 of the executor's last run at about `rows` positions: the ends of the
/// sequence and of every shard, and others spread between them. Of a program with a backward pass
/// the gradients there are checked too, with delta (and for dK and dV lse) of the rows taken from
/// the run's output, which the same call samples.
Verification verify_rows(const RingProgram& program, const DataSource& data,
                         const Executor& executor, int64_t rows);

/// The positions that are checked, ascending.
std::vector<int64_t> sampled_positions(const Partition& partition, int64_t rows);

}  // namespace ring
