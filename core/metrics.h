// Metrics of a timeline: busy, exposed, overlapped and idle time, per rank and in all.
#pragma once

#include <string>
#include <vector>

#include "core/timeline.h"

namespace ring {

struct RankMetrics {
  Picoseconds compute_ps = 0;        ///< Union of attend, merge, copy, finalize, compute slices.
  Picoseconds communication_ps = 0;  ///< Union of the transfer part of send and receive slices.
  Picoseconds waiting_ps = 0;        ///< Union of the waiting part of receives, outside transfers.
  Picoseconds exposed_ps = 0;        ///< Communication not covered by computation of the rank.
  Picoseconds finish_ps = 0;         ///< End of the last slice of the rank.
  double busy_share = 0;             ///< compute_ps / makespan.
};

struct Metrics {
  Picoseconds makespan_ps = 0;
  std::vector<RankMetrics> ranks;
  Picoseconds compute_ps = 0;  ///< Mean over ranks, as are the next two.
  Picoseconds communication_ps = 0;
  Picoseconds exposed_ps = 0;
  double communication_ratio = 0;  ///< communication / compute.
  double overlap = 0;    ///< 1 - exposed / communication; 1 when there is no communication.
  double imbalance = 0;  ///< Longest compute of a rank over the mean, minus 1.
  int busiest_rank = 0, idlest_rank = 0;
  __int128 flops = 0;  ///< Of all ranks, exact: may be more than 64 bits hold.
  Bytes bytes_sent = 0;
  double flops_per_s = 0;
  bool is_complete = true;
};

Metrics measure(const Timeline& timeline);

/// Fills what follows from the times of the ranks, the makespan and the flops: busy shares, means,
/// ratios, overlap, imbalance, busiest and idlest rank, flop rate.
void summarize(Metrics& metrics);

/// A sentence that names the imbalance: "rank 3 computes 87 % of the time, rank 0 14 %".
std::string describe_balance(const Metrics& metrics);

}  // namespace ring
