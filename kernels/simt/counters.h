// Counters: what a launch did, where its time cannot be measured.
#pragma once

#include <cstdint>

namespace ring::simt {

struct Counters {
  int64_t mma = 0;                ///< Warp instructions m16n8k16.
  int64_t wgmma = 0;              ///< Warpgroup instructions, 16 deep.
  int64_t ldmatrix = 0;           ///< Warp instructions of four matrices.
  int64_t bank_conflicts = 0;     ///< Extra passes over shared memory, beyond the least possible.
  int64_t block_barriers = 0;     ///< Completed, of all blocks.
  int64_t shuffles = 0;           ///< Warp instructions.
  int64_t exp2 = 0;               ///< Of single threads.
  int64_t copy_bytes = 0;         ///< Read by asynchronous copies.
  int64_t global_read_bytes = 0;  ///< By ordinary loads.
  int64_t global_written_bytes = 0;  ///< By ordinary stores and atomic additions.
};

}  // namespace ring::simt
