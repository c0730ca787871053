// The block kernels over a team of threads.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "kernels/cpu/attend.h"
#include "kernels/cpu/attend_backward.h"
#include "kernels/cpu/thread_team.h"

namespace ring::cpu {

// A team, with the scratch of each member and the plan of the current call.
class ParallelKernels {
 public:
  // The team must outlive this. Scratch is touched first by the member that uses it, so it lies on
  // that member's NUMA node.
  ParallelKernels(ThreadTeam& team, const CacheSizes& caches);

  // As cpu::attend, bit by bit, with the rows of all heads shared out so that every member gets
  // the same number of visible (query, key) pairs. Allocates only when a shape is larger than any
  // before.
  void attend(const AttendShape& shape, ConstView q, ConstView k, ConstView v, const KeySpan* spans,
              AttendState state);

  // As cpu::attend_backward, bit by bit.
  void attend_backward(const AttendShape& shape, const BackwardInput& input, const KeySpan* spans,
                       BackwardOutput output);

 private:
  // Keys [begin, end) of a head, all rows against which one member does.
  struct KeyUnit {
    int kv_head = 0;
    int64_t begin = 0, end = 0;
  };

  void plan_pieces(const AttendShape& shape, const KeySpan* spans);
  void plan_units(const AttendShape& shape);

  ThreadTeam& team_;
  std::vector<std::unique_ptr<Workspace>> workspaces_;
  std::vector<int64_t> cost_;    // (q_rows + 1) pairs of the rows before each row
  std::vector<int64_t> pieces_;  // ascending bounds, as kv_head * stacked rows + stacked row
  std::vector<KeyUnit> units_;
  std::vector<std::atomic<int>> progress_;  // (unit) row units done
};

}  // namespace ring::cpu
