// PhaseBarriers: the mbarriers of a block, and the bulk tensor copies that complete on them.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "kernels/simt/shared_memory.h"
#include "kernels/simt/tensor_map.h"

namespace ring::simt {

class Block;

/// A barrier passes from phase to phase when all arrivals and all announced bytes have come. Copies
/// land when somebody waits for their barrier and not before; what they wrote is visible to those
/// who waited. Faults end the launch.
class PhaseBarriers {
 public:
  explicit PhaseBarriers(Block& block) : block_(block) {}
  void reset();

  void init(int thread, SharedAddress at, int arrivals);
  /// Makes the barriers that this thread began known to copies.
  void fence_init(int thread);
  void arrive(int thread, SharedAddress at, int announced_bytes);
  /// Whether the last phase of this parity is over. Copies on their way land first.
  bool is_over(int thread, SharedAddress at, int parity);
  /// The warp has waited: it sees what was done before the phase ended.
  void acquire(int warp, SharedAddress at);
  void copy(int thread, SharedAddress to, const TensorMap& map, const TensorPlace& place,
            SharedAddress at);
  bool has_copies() const { return !copies_.empty(); }

 private:
  struct Barrier {
    int arrivals = 0, missing = 0;
    int64_t missing_bytes = 0;
    int64_t phase = 0;
    int number = 0;
    int thread = 0;  ///< That began it, and when.
    uint32_t time = 0;
    bool is_fenced = false;
    WarpClock filling, done;  ///< What is known by those who arrived, and at the last end.
  };
  struct Copy {
    SharedAddress barrier = 0;
    std::vector<std::pair<SharedAddress, std::array<uint8_t, kCopyBytes>>> chunks;
  };

  Barrier& barrier_of(int thread, SharedAddress at);
  void end_phase_if_complete(Barrier& barrier);
  void land(SharedAddress at);

  Block& block_;
  std::map<SharedAddress, Barrier> barriers_;
  std::vector<Copy> copies_;
};

}  // namespace ring::simt
