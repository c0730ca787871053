#include "core/critical_path.h"

#include <algorithm>

#include "core/error.h"

namespace ring {
namespace {

/// A rendezvous is told by its receive, so that the same transfer is named alike everywhere.
OpId told_as(const RunGraph& graph, int64_t node) {
  const bool is_sender = graph.is_joint(node) && graph.op(node).kind == OpKind::kSend;
  return graph.id(is_sender ? graph.partner(node) : node);
}

/// When the activity began in the walk, not after `at_ps`.
Picoseconds begin_of(const RunGraph& graph, int64_t node, Picoseconds at_ps,
                     const Release& release) {
  const Op& op = graph.op(node);
  const Slice& slice = graph.slice(node);
  if (graph.is_joint(node)) {
    return std::min(at_ps, std::max(slice.start_ps, graph.slice(graph.partner(node)).start_ps));
  }
  const bool is_received = op.kind == OpKind::kReceive;
  if (is_received && graph.partner(node) >= 0 && graph.ran(graph.partner(node))) {
    // Eager: the time on the wire is that of the send; the receive adds what lies after both.
    return std::min({at_ps, std::max(release.end_ps, Picoseconds{0}), slice.end_ps});
  }
  if (is_received) return std::min(at_ps, slice.posted_ps);
  return std::min(at_ps, slice.start_ps);
}

}  // namespace

std::vector<PathSegment> walk_back(const RunGraph& graph, int64_t node, Picoseconds from_ps,
                                   Picoseconds to_ps) {
  std::vector<PathSegment> segments;
  Picoseconds at_ps = from_ps;
  const auto add = [&](PathSegment segment, SegmentKind kind, Picoseconds begin_ps) {
    segment.kind = kind;
    segment.begin_ps = std::max(begin_ps, to_ps);
    segment.end_ps = at_ps;
    if (segment.begin_ps < segment.end_ps) segments.push_back(segment);
    at_ps = std::min(at_ps, segment.begin_ps);
  };
  for (int64_t steps = 0; at_ps > to_ps; ++steps) {
    if (steps > 2 * graph.nodes()) throw_usage("the program has a cycle of ops");
    const Release release = graph.release_of(node);
    PathSegment segment;
    segment.op = told_as(graph, node);
    segment.release = release.kind;
    segment.released_by = release.node < 0 ? segment.op : graph.id(release.node);
    if (release.kind == ReleaseKind::kBufferCredit) {
      segment.credit_begin_ps = release.without_credit_ps;
      segment.credit_end_ps = release.end_ps;
    }
    const Picoseconds begin_ps = begin_of(graph, node, at_ps, release);
    add(segment, SegmentKind::kOp, begin_ps);
    if (release.node < 0) {
      add(segment, SegmentKind::kStart, 0);
      break;
    }
    add(segment, SegmentKind::kLaunch, std::min(begin_ps, release.end_ps));
    node = release.node;
  }
  std::reverse(segments.begin(), segments.end());
  return segments;
}

CriticalPath critical_path(const RunGraph& graph) {
  CriticalPath path;
  int64_t last = -1;
  for (int64_t n = 0; n < graph.nodes(); ++n) {
    if (!graph.ran(n)) continue;
    if (last < 0 || graph.slice(n).end_ps > graph.slice(last).end_ps) last = n;
  }
  if (last < 0) return path;
  path.makespan_ps = std::max<Picoseconds>(0, graph.slice(last).end_ps);
  path.segments = walk_back(graph, last, path.makespan_ps, 0);
  return path;
}

std::vector<PathPiece> split_at_credits(const std::vector<PathSegment>& segments) {
  std::vector<PathPiece> pieces;  // from the last to the first
  Picoseconds wait_begin_ps = 0, wait_end_ps = 0;
  int32_t rank = -1;
  const auto add = [&](const PathSegment& segment, Picoseconds begin_ps, Picoseconds end_ps,
                       bool is_credit_wait) {
    if (begin_ps >= end_ps) return;
    PathPiece piece{segment, is_credit_wait, is_credit_wait ? rank : -1};
    piece.segment.begin_ps = begin_ps;
    piece.segment.end_ps = end_ps;
    pieces.push_back(piece);
  };
  for (size_t i = segments.size(); i-- > 0;) {
    const PathSegment& segment = segments[i];
    const Picoseconds begin_ps = segment.begin_ps;
    const Picoseconds from_ps = std::clamp(wait_begin_ps, begin_ps, segment.end_ps);
    const Picoseconds to_ps = std::clamp(wait_end_ps, from_ps, segment.end_ps);
    add(segment, to_ps, segment.end_ps, false);
    add(segment, from_ps, to_ps, true);
    add(segment, begin_ps, from_ps, false);
    if (segment.release != ReleaseKind::kBufferCredit) continue;
    // What is left of the wait before goes on; otherwise the one of this segment begins.
    if (wait_begin_ps < begin_ps && wait_end_ps > wait_begin_ps) {
      wait_end_ps = begin_ps;
      wait_begin_ps = std::min(wait_begin_ps, segment.credit_begin_ps);
    } else {
      wait_begin_ps = segment.credit_begin_ps;
      wait_end_ps = std::min(segment.credit_end_ps, begin_ps);
      rank = segment.released_by.rank;
    }
  }
  std::reverse(pieces.begin(), pieces.end());
  return pieces;
}

}  // namespace ring
