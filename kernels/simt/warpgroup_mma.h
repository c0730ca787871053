// WarpgroupMma: the asynchronous matrix products of warpgroups (wgmma), as seen by their warps.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "kernels/simt/types.h"

namespace ring::simt {

class Block;
struct Arrival;

/// d (64, columns) = a (64, 16) b (16, columns) + d, or without d. Warp w of the warpgroup owns
/// rows 16 w and on; with g = lane / 4 and t = lane % 4 its lane holds of d
///   d[4 j], d[4 j + 1]  row g,  columns 8 j + 2 t and one more; d[4 j + 2], d[4 j + 3] of row g +
///   8
/// and of an `a` in registers what mma.m16n8k16 takes. (PTX ISA, fragments of wgmma.m64nNk16.)
struct WgmmaArgument {
  float* d = nullptr;
  const uint32_t* a = nullptr;  ///< Null: a is in shared memory, rows of 16 elements.
  uint64_t a_descriptor = 0, b_descriptor = 0;
  int columns = 0;
  bool is_half = false;
  bool is_b_transposed = false;  ///< b stands as rows of its k index: columns are contiguous.
  bool accumulates = true;
};

/// Every warp does its 16 rows of an instruction by itself; that the four warps of a warpgroup
/// issue the same instructions is checked beside it. A product happens at the wait for its group:
/// until then its accumulators are NaN, and shared memory must have been there at the issue and
/// still be there at the wait.
class WarpgroupMma {
 public:
  WarpgroupMma(Block& block, int warps);
  void reset();

  void fence(int warp) { warps_[static_cast<size_t>(warp)].is_fenced = true; }
  void issue(std::span<const Arrival> lanes);
  void commit(int warp);
  void wait(std::span<const Arrival> lanes, int pending);
  bool is_pending(int warp) const { return !warps_[static_cast<size_t>(warp)].ops.empty(); }

 private:
  struct Op {
    WgmmaArgument what;  ///< Of lane 0.
    float* d[kWarp] = {};
    const uint32_t* a[kWarp] = {};
    uint32_t a_issued[kWarp][4] = {};
    int64_t group = -1;  ///< -1: not committed.
  };
  /// Accumulators on their way, (16, columns); `key` is lane 0's pointer.
  struct Sums {
    const float* key = nullptr;
    std::vector<float> values;
  };
  struct Warp {
    std::deque<Op> ops;
    std::vector<Sums> sums;
    int64_t groups = 0;
    int64_t issued = 0;
    bool is_fenced = false;
  };
  struct Signature {
    uint64_t a_descriptor = 0, b_descriptor = 0;
    int columns = 0;
    bool accumulates = false;
    bool operator==(const Signature&) const = default;
  };

  void check_warpgroup(int thread, const WgmmaArgument& what);
  void begin_sums(Warp& warp, Op& op);
  void execute(int warp, const Op& op, std::vector<float>& sums);
  void end_sums(Warp& warp, const Op& op);
  void read_a(int warp, const Op& op, float (&a)[16][16]);
  void read_b(int warp, const Op& op, std::vector<float>& b);
  void read_operands(int warp, const Op& op);

  Block& block_;
  std::vector<Warp> warps_;
  std::vector<std::vector<Signature>> issued_;  ///< By warpgroup.
};

}  // namespace ring::simt
