// HopActivity: what travels between which ranks at a moment of a timeline, and how busy hops are.
#pragma once

#include <vector>

#include "core/timeline.h"

namespace ring {

/// All transfers from one rank to another.
struct Hop {
  int32_t from = 0, to = 0;
  Bytes bytes = 0;
  Picoseconds busy_ps = 0;  ///< Union of its transfers.
  double busy_share = 0;    ///< busy_ps over the makespan.
};

/// A message under way at a moment.
struct HopTransfer {
  size_t hop = 0;  ///< Into HopActivity::hops.
  size_t slice = 0;
  double done = 0;         ///< Share of the transfer that is past, in [0, 1].
  double bytes_per_s = 0;  ///< Its mean rate.
};

class HopActivity {
 public:
  /// Reads the receives of the timeline, which must outlive this.
  explicit HopActivity(const Timeline& timeline);

  /// By (from, to).
  const std::vector<Hop>& hops() const { return hops_; }
  /// Messages with start <= at < end, by hop.
  std::vector<HopTransfer> at(Picoseconds at_ps) const;
  /// The least slack of the receives of each hop; `slack_ps` by rank and op, -1: did not run. -1
  /// where no receive has one.
  std::vector<Picoseconds> least_slack_ps(
      const std::vector<std::vector<Picoseconds>>& slack_ps) const;
  /// Whether each rank computes at the moment.
  std::vector<bool> computing_at(Picoseconds at_ps) const;

 private:
  struct Span {
    Picoseconds begin_ps = 0, end_ps = 0;
    size_t slice = 0;
  };

  const Timeline* timeline_;
  std::vector<Hop> hops_;
  std::vector<std::vector<Span>> transfers_;  ///< By hop, in order of time.
  std::vector<Picoseconds> longest_ps_;       ///< By hop.
  std::vector<std::vector<Span>> work_;       ///< By rank, in order of time.
};

}  // namespace ring
