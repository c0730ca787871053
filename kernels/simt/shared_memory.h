// SharedMemory: the shared memory of a block with a shadow that knows who may see what.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/simt/types.h"

namespace ring::simt {

/// Every access is checked for being ordered after the writes it sees and, if it writes, after the
/// reads it ends. Order is kept in vector clocks over the warps: `known[a][b]` is how far warp a
/// knows warp b to have come. Barriers join clocks; what warp b did before its clock ticked is
/// visible to warp a once a knows of the tick. Memory starts poisoned: reading what was not written
/// is a fault as well.
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

  /// A barrier of one warp.
  void sync_warp(int warp);
  /// A barrier of the warps whose bit is set.
  void sync_warps(uint32_t mask);

 private:
  enum class Content : uint8_t { kPoison, kWritten, kInFlight };
  struct Shadow {
    uint32_t time = 0;  ///< Of the writing warp.
    uint16_t thread = 0;
    Content content = Content::kPoison;
  };
  /// Lane of a reader when there were several.
  static constexpr uint32_t kManyLanes = 32;

  std::string check_range(SharedAddress at, int bytes) const;
  std::string check_read(int thread, uint32_t word) const;
  std::string check_write(int thread, uint32_t word) const;
  bool is_ordered(int thread, int other_thread, uint32_t time) const;
  uint32_t& known(int warp, int of) { return known_[static_cast<size_t>(warp * warps_ + of)]; }
  uint32_t known(int warp, int of) const { return known_[static_cast<size_t>(warp * warps_ + of)]; }

  int warps_;
  std::vector<uint32_t> words_;
  std::vector<Shadow> shadow_;
  std::vector<uint32_t> reads_;  ///< (word, warp): (time + 1) * 64 + lane of the last read, or 0.
  std::vector<uint32_t> known_;  ///< (warp, warp)
};

}  // namespace ring::simt
