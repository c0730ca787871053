// SharedMemory: the shared memory of a block with a shadow that knows who may see what.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/simt/types.h"

namespace ring::simt {

/// How far every warp is known to have come, by warp.
using WarpClock = std::vector<uint32_t>;

/// Every access is checked for being ordered after the writes it sees and, if it writes, after the
/// reads it ends. Order is kept in vector clocks over the warps: `known[a][b]` is how far warp a
/// knows warp b to have come. Barriers join clocks; what warp b did before its clock ticked is
/// visible to warp a once a knows of the tick. Memory starts poisoned: reading what was not written
/// is a fault as well. Bulk copies write as
/// warps of their own, one for every barrier that they complete on: nothing orders those among each
/// other. Matrix units read for a warp, and what
/// threads wrote by themselves they see only once the writer has fenced it.
///
/// Checks return an empty text, or what is wrong.
class SharedMemory {
 public:
  SharedMemory(int bytes, int warps);
  /// As new, for the next block.
  void reset();

  int bytes() const { return static_cast<int>(words_.size()) * 4; }

  std::string read(int thread, SharedAddress at, void* to, int bytes);
  std::string write(int thread, SharedAddress at, const void* from, int bytes);
  /// Marks 16 bytes as being written by a copy under way; nothing may touch them until it lands.
  std::string begin_copy(int thread, SharedAddress at);
  void land_copy(int thread, SharedAddress at, const void* from);
  /// 16 bytes of a bulk copy, one of those that write as warp `copier`.
  void land_bulk(int copier, SharedAddress at, const void* from);
  /// 16 bytes, by a matrix unit for the warp.
  std::string read_async(int warp, SharedAddress at, void* to);
  /// What the thread wrote so far may be read by matrix units.
  void fence_async(int thread) { ++fences_[static_cast<size_t>(thread)]; }
  /// Makes 8 bytes a barrier: nothing may touch them from now on.
  std::string claim(int thread, SharedAddress at);

  /// A barrier of one warp.
  void sync_warp(int warp);
  /// A barrier of the warps whose bit is set.
  void sync_warps(uint32_t mask);
  /// The warp's clock ticks, and what it knows is added to `clock`; the other way round.
  void release(int warp, WarpClock& clock);
  void acquire(int warp, const WarpClock& clock);
  /// Warp as which the copies of a barrier write.
  int copier(int barrier) const { return warps_ + barrier; }
  static constexpr int kCopiers = 32;
  uint32_t time_of(int thread) const { return known(thread / kWarp, thread / kWarp); }
  /// Whether a thread knows what another one did at a time.
  bool is_ordered(int thread, int other_thread, uint32_t time) const;

 private:
  enum class Content : uint8_t { kPoison, kWritten, kInFlight, kBarrier };
  struct Shadow {
    uint32_t time = 0;    ///< Of the writing warp.
    uint32_t fences = 0;  ///< Of the writing thread until then.
    uint16_t thread = 0;
    Content content = Content::kPoison;
  };
  /// Lane of a reader when there were several.
  static constexpr uint32_t kManyLanes = 32;

  std::string check_range(SharedAddress at, int bytes) const;
  std::string check_read(int thread, uint32_t word) const;
  std::string check_write(int thread, uint32_t word) const;
  std::string check_fence(uint32_t word) const;
  void mark_read(int warp, uint32_t lane, uint32_t word);
  uint32_t& known(int warp, int of) { return known_[place(warp, of)]; }
  uint32_t known(int warp, int of) const { return known_[place(warp, of)]; }
  size_t place(int warp, int of) const { return static_cast<size_t>(warp * clocks() + of); }
  int clocks() const { return warps_ + kCopiers; }

  int warps_;
  std::vector<uint32_t> words_;
  std::vector<Shadow> shadow_;
  std::vector<uint32_t> reads_;   ///< (word, warp): (time + 1) * 64 + lane of the last read, or 0.
  std::vector<uint32_t> known_;   ///< (warp, warp), copiers last.
  std::vector<uint32_t> fences_;  ///< By thread.
};

}  // namespace ring::simt
