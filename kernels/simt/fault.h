// SimtFault: what device code did that a GPU would have let pass, or not noticed.
#pragma once

#include <stdexcept>
#include <string>

namespace ring::simt {

/// Thrown by a launch; the message names block, thread, source line and what was wrong.
class SimtFault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Faults that a launch commits on purpose, so that tests can show that they would be noticed.
struct Sabotage {
  int skip_wait = -1;     ///< This wait for asynchronous copies does nothing, counted per thread.
  int skip_barrier = -1;  ///< This barrier of the block does nothing, counted per thread.
  int skip_warp_barrier = -1;           ///< As skip_barrier, of the warp.
  int skip_phase_wait = -1;             ///< As skip_wait, of waits for a phase of a barrier ...
  int phase_wait_warp = -1;             ///< ... by this warp, or by all.
  int skip_arrival = -1;                ///< As skip_wait, of arrivals at a barrier with phases.
  int skip_wgmma_wait = -1;             ///< As skip_wait, of waits for matrix products.
  int skip_wgmma_fence = -1;            ///< As skip_wait, of fences before matrix products.
  bool skips_init_fence = false;        ///< The fence after the beginning of barriers does nothing.
  bool ignores_tensor_swizzle = false;  ///< Bulk tensor copies write rows as they are.
  bool swaps_fragments = false;         ///< Lanes 4 apart exchange ldmatrix, wgmma fragments.
  bool skips_swizzled_bit = false;      ///< ldmatrix reads 16 bytes beside the row it was given.
};

}  // namespace ring::simt
