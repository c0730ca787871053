// SimulationRecorder: metrics while the simulation runs, and its timeline where one is kept.
#pragma once

#include <cstdint>
#include <vector>

#include "core/metrics.h"
#include "core/timeline.h"

namespace ring {

/// Unions of intervals are kept as counters of what is under way, so metrics need no timeline.
class SimulationRecorder {
 public:
  SimulationRecorder(int ranks, int lanes, bool keep_timeline);

  void compute_begins(int rank, Picoseconds now_ps) { change(rank, now_ps).computing += 1; }
  void compute_ends(int rank, Picoseconds now_ps) { change(rank, now_ps).computing -= 1; }
  void transfer_begins(int rank, Picoseconds now_ps) { change(rank, now_ps).transferring += 1; }
  void transfer_ends(int rank, Picoseconds now_ps) { change(rank, now_ps).transferring -= 1; }
  void wait_begins(int rank, Picoseconds now_ps) { change(rank, now_ps).waiting += 1; }
  void wait_ends(int rank, Picoseconds now_ps) { change(rank, now_ps).waiting -= 1; }

  void prefetch(int rank) const { __builtin_prefetch(&activities_[static_cast<size_t>(rank)]); }

  /// For a timeline: an op is done. Slices of a lane must come in order.
  void add(const Slice& slice);

  /// Flops and bytes are those of the ranks recorded, which stand for `all_ranks` when there are
  /// more of these.
  Metrics metrics(__int128 flops, Bytes bytes_sent, int all_ranks) const;
  /// Gives the slices away; to be called once.
  Timeline take_timeline();
  bool keeps_timeline() const { return keep_timeline_; }

 private:
  struct alignas(64) Activity {
    int32_t computing = 0, transferring = 0, waiting = 0;
    Picoseconds since_ps = 0;  ///< Last change of the counters; in the end, when the rank ended.
    Picoseconds compute_ps = 0, communication_ps = 0, waiting_ps = 0, exposed_ps = 0;
  };

  Activity& change(int rank, Picoseconds now_ps) {
    Activity& activity = activities_[static_cast<size_t>(rank)];
    const Picoseconds passed_ps = now_ps - activity.since_ps;
    if (passed_ps > 0) {
      activity.since_ps = now_ps;
      if (activity.computing > 0) activity.compute_ps += passed_ps;
      if (activity.transferring > 0) {
        activity.communication_ps += passed_ps;
        if (activity.computing == 0) activity.exposed_ps += passed_ps;
      } else if (activity.waiting > 0) {
        activity.waiting_ps += passed_ps;
      }
    }
    return activity;
  }

  int lanes_;
  bool keep_timeline_;
  std::vector<Activity> activities_;
  std::vector<std::vector<Slice>> slices_;  ///< By lane of all ranks.
};

}  // namespace ring
