// Block: runs the threads of one block at a time as fibers, with the rendezvous of their warps.
#pragma once

#include <cstdint>
#include <memory>
#include <source_location>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernels/simt/counters.h"
#include "kernels/simt/fault.h"
#include "kernels/simt/fiber.h"
#include "kernels/simt/phase_barriers.h"
#include "kernels/simt/shared_memory.h"
#include "kernels/simt/types.h"
#include "kernels/simt/warpgroup_mma.h"

namespace ring::simt {

/// Memory that kernels may touch. Without any region, nothing is checked.
struct GlobalRegion {
  const void* begin = nullptr;
  int64_t bytes = 0;
  bool is_writable = false;
};

struct LaunchOptions {
  LaunchShape shape;
  uint64_t seed = 1;  ///< Of the order in which blocks, warps and lanes run.
  std::vector<GlobalRegion> regions;
  Sabotage sabotage;
};

/// What all lanes of a warp do together.
enum class Collective : uint8_t {
  kMma,
  kLdmatrix,
  kLdmatrixTrans,
  kShuffle,
  kVote,
  kWarpBarrier,
  kBlockBarrier,
  kSharedLoad,
  kSharedStore,
  kCopy,
  kBarrierInit,
  kBarrierFence,
  kArrive,
  kPhaseWait,
  kTensorCopy,
  kWgmma,
  kWgmmaFence,
  kWgmmaCommit,
  kWgmmaWait,
  kRegisters,
};

/// One lane's part in a collective: its thread and what the collective reads and writes.
struct Arrival {
  int thread = 0;
  void* argument = nullptr;
};

class Block {
 public:
  using Entry = void (*)(const void* kernel, Block& block, int thread);
  /// Does a collective for the 32 arrivals of a warp, ordered by lane.
  using Execute = void (*)(Block& block, std::span<const Arrival> lanes);

  explicit Block(const LaunchOptions& options);
  ~Block();

  /// Runs all blocks of the grid, in a shuffled order; throws SimtFault.
  void run(Entry entry, const void* kernel);

  // For the threads.
  int block(int axis) const { return block_[axis]; }
  const LaunchShape& shape() const { return options_.shape; }
  const Sabotage& sabotage() const { return options_.sabotage; }
  SharedMemory& shared() { return shared_; }
  Counters& counters() { return counters_; }
  PhaseBarriers& barriers() { return barriers_; }
  WarpgroupMma& products() { return products_; }

  /// Waits until the whole warp has come to the same collective; the last one executes it.
  void meet(int thread, Collective what, void* argument, Execute execute,
            const std::source_location& where);
  void sync_block(int thread, const std::source_location& where);
  /// The warp waits until the last phase of this parity of a barrier is over.
  void wait_phase(int thread, SharedAddress barrier, int parity, const std::source_location& where);

  /// Asynchronous copies of a thread: they land at a wait and not before. `from` null: zeros.
  void begin_copy(int thread, SharedAddress to, const void* from);
  void commit_copies(int thread);
  /// Until at most `pending` of the thread's committed groups are under way.
  void wait_copies(int thread, int pending);

  void check_global(int thread, const void* at, int bytes, bool is_write,
                    const std::source_location& where);
  /// Ends the launch if `wrong` says anything.
  void require(int thread, std::string wrong, const std::source_location& where) {
    if (!wrong.empty()) fail(thread, std::move(wrong), where);
  }
  /// Where the collective under way stands in the source.
  const std::source_location& collective_place(int thread) const;
  /// The fiber that calls it is left for good, with whatever its frames own.
  [[noreturn]] void fail(int thread, std::string what, const std::source_location& where);

 private:
  struct Copy {
    SharedAddress to = 0;
    bool is_committed = false;
    int64_t group = 0;
    uint8_t bytes[kCopyBytes] = {};
  };
  struct Thread {
    Block* block = nullptr;
    int index = 0;
    Fiber fiber;
    std::vector<Copy> copies;
    int64_t groups = 0;  ///< Committed so far.
  };
  enum class WarpState : uint8_t { kRunnable, kAtBarrier, kAtPhase, kDone };
  struct PhaseWait {
    SharedAddress barrier = 0;
    int parity = 0;
  };
  struct Warp {
    std::vector<int> order;     ///< Threads in the order in which they run.
    std::vector<size_t> place;  ///< By lane: where in `order`.
    WarpState state = WarpState::kRunnable;
    int resume = 0;  ///< Thread that goes on when the warp does.
    int arrived = 0;
    int done = 0;
    Collective what = Collective::kMma;
    Execute execute = nullptr;
    std::source_location where;
    PhaseWait phase;  ///< That it waits for, kAtPhase.
    Arrival lanes[kWarp];
  };

  static void enter(void* thread);
  void run_block(int64_t number);
  void finish_thread(int thread);
  void switch_threads(int from, int to);
  /// Another warp's turn; `thread` goes on when this warp is chosen again.
  void leave_warp(int thread, const std::source_location& where);
  int pick_warp(int except);
  /// Makes a warp runnable again whose phase is over.
  void wake(int warp);
  uint64_t random();
  Warp& warp_of(int thread) { return warps_[static_cast<size_t>(thread / kWarp)]; }

  LaunchOptions options_;
  int warp_count_;
  SharedMemory shared_;
  Counters counters_;
  PhaseBarriers barriers_;
  WarpgroupMma products_;
  std::vector<std::unique_ptr<Thread>> threads_;
  std::vector<Warp> warps_;
  Fiber main_;
  Entry entry_ = nullptr;
  const void* kernel_ = nullptr;
  int block_[3] = {0, 0, 0};
  uint64_t random_state_ = 0;
  std::string fault_;
};

}  // namespace ring::simt
