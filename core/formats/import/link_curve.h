// LinkCurve: time of a message between two devices over its size, as logs of link tests state it.
#pragma once

#include <string>
#include <vector>

#include "core/formats/findings.h"
#include "core/formats/import/link_log.h"
#include "core/formats/import/nccl_tests_log.h"

namespace ring {

struct LinkPoint {
  int64_t bytes = 0;   ///< Of one message of one hop; 0: not stated.
  double seconds = 0;  ///< 0: only a rate is stated.
  double bytes_per_s = 0;
};

struct LinkCurve {
  std::string from, to;  ///< "gpu0", "gpu1"; both "rank" where all neighbours of a ring send.
  std::string how;       ///< "all_gather over 8 ranks, a step of 7", "write by sm".
  bool crosses_hosts = false;
  bool is_both_ways = false;      ///< The other direction ran at the same time.
  std::vector<LinkPoint> points;  ///< By size.
  double start_s = 0;             ///< Fitted: seconds = start + bytes / rate; 0: not known.
  double bytes_per_s = 0;         ///< Fitted, or the greatest where there is no curve.
};

struct LinkCurves {
  std::vector<LinkCurve> curves;
  Findings findings;
};

/// A hop of the ring that carries the collective, out of place. all_gather and reduce_scatter send
/// size / n in each of n - 1 steps, all_reduce in 2 (n - 1), sendrecv the whole size in one.
/// Other collectives give the rate of a rank only. Runs without rows give no curve.
LinkCurves link_curves(const NcclTestsLog& log);

/// One curve for each pair of different devices; what stays within a device is left aside. Figures
/// of both directions together count half.
LinkCurves link_curves(const LinkLog& log);

/// The curve that says most about a hop between two GPUs (or two hosts, where none does): one way
/// before both ways, more points before fewer, then the widest. nullptr when there is none.
const LinkCurve* best_curve(const LinkCurves& curves);

/// "from,to,how,bytes,seconds,bytes_per_s" and a row for each point; empty cells are not known.
std::string link_curves_csv(const LinkCurves& curves);

}  // namespace ring
