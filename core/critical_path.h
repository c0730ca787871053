// CriticalPath: the chain of ops that made a run as long as it was.
#pragma once

#include <cstdint>
#include <vector>

#include "core/run_graph.h"

namespace ring {

enum class SegmentKind : uint8_t {
  kOp,      ///< The op was under way.
  kLaunch,  ///< The op was released but had not started: launch, wake-up of its lane.
  kStart,   ///< Nothing had run yet on the way to the op: the rank started late.
};

/// A piece of the path. Of a rendezvous, `op` is the receive.
struct PathSegment {
  OpId op;
  SegmentKind kind = SegmentKind::kOp;
  Picoseconds begin_ps = 0;
  Picoseconds end_ps = 0;
  ReleaseKind release = ReleaseKind::kStartOfRun;  ///< What the op waited for last.
  OpId released_by;  ///< The op that ended last; the op itself at the start of the run.
  /// When everything but buffer credits had been met, and when the credit came; empty interval
  /// unless `release` is kBufferCredit.
  Picoseconds credit_begin_ps = 0;
  Picoseconds credit_end_ps = 0;

  Picoseconds length_ps() const { return end_ps - begin_ps; }
};

struct CriticalPath {
  Picoseconds makespan_ps = 0;
  /// In order of time; they tile [0, makespan_ps] without gap or overlap.
  std::vector<PathSegment> segments;
};

/// Walks back from the last slice over the op that released it last. Ties go to the smaller rank,
/// then to the earlier predecessor. Works for measured timelines, whose slices may overlap what
/// they waited for by clock jitter, and for timelines of stopped runs.
CriticalPath critical_path(const RunGraph& graph);

/// What `node` waited for in [to_ps, from_ps): segments that tile this interval, in order of time.
/// The op itself is part of it only where it was under way.
std::vector<PathSegment> walk_back(const RunGraph& graph, int64_t node, Picoseconds from_ps,
                                   Picoseconds to_ps);

/// A segment or a part of one.
struct PathPiece {
  PathSegment segment;  ///< Cut to the part.
  /// The transfer that followed lacked only a receive buffer during this time: with a deeper
  /// pipeline it would not have waited for what this piece shows.
  bool is_credit_wait = false;
  int32_t credit_rank = -1;  ///< Whose buffers were full.
};

/// Cuts segments (in order of time, without gaps) at the ends of their credit waits. The pieces
/// tile the same time. Of two credit waits that overlap the later one counts.
std::vector<PathPiece> split_at_credits(const std::vector<PathSegment>& segments);

}  // namespace ring
