#include "core/bubbles.h"

#include <algorithm>
#include <map>
#include <utility>

#include "core/blame.h"
#include "core/critical_path.h"

namespace ring {

std::string_view name(BubbleKind kind) {
  switch (kind) {
    case BubbleKind::kFill:
      return "fill";
    case BubbleKind::kDrain:
      return "drain";
    case BubbleKind::kImbalance:
      return "imbalance";
    case BubbleKind::kCreditWait:
      return "credit wait";
    case BubbleKind::kContention:
      return "contention";
    case BubbleKind::kLaunch:
      return "launch";
    case BubbleKind::kLateStart:
      return "late start";
    case BubbleKind::kCommunication:
      return "communication";
  }
  return "?";
}

namespace {

/// A stretch of work of a rank: the union of slices that touch or overlap.
struct Busy {
  Picoseconds begin_ps, end_ps;
  int64_t first_node;
};

class Accountant {
 public:
  Accountant(const RunGraph& graph, const AloneTimes& alone) : graph_(graph), alone_(alone) {}

  RunAccount run() {
    find_ends();
    account_.ranks.resize(static_cast<size_t>(graph_.program().ranks()));
    for (int32_t rank = 0; rank < graph_.program().ranks(); ++rank) account_rank(rank);
    for (const auto& [ends, hop] : hops_) account_.hops.push_back(hop);
    return std::move(account_);
  }

 private:
  void find_ends() {
    busy_.resize(static_cast<size_t>(graph_.program().ranks()));
    last_node_.assign(busy_.size(), -1);
    for (int64_t n = 0; n < graph_.nodes(); ++n) {
      if (!graph_.ran(n)) continue;
      const Slice& slice = graph_.slice(n);
      const auto rank = static_cast<size_t>(slice.op.rank);
      account_.makespan_ps = std::max(account_.makespan_ps, slice.end_ps);
      int64_t& last = last_node_[rank];
      if (last < 0 || slice.end_ps > graph_.slice(last).end_ps) last = n;
      if (!is_work(slice.kind) || slice.end_ps <= slice.start_ps) continue;
      last_work_ps_ = std::max(last_work_ps_, slice.end_ps);
      busy_[rank].push_back({std::max<Picoseconds>(0, slice.start_ps), slice.end_ps, n});
    }
    for (auto& stretches : busy_) join(stretches);
  }

  static void join(std::vector<Busy>& stretches) {
    std::sort(stretches.begin(), stretches.end(), [](const Busy& a, const Busy& b) {
      return std::pair(a.begin_ps, a.first_node) < std::pair(b.begin_ps, b.first_node);
    });
    size_t kept = 0;
    for (const Busy& next : stretches) {
      if (kept > 0 && next.begin_ps <= stretches[kept - 1].end_ps) {
        stretches[kept - 1].end_ps = std::max(stretches[kept - 1].end_ps, next.end_ps);
      } else {
        stretches[kept++] = next;
      }
    }
    stretches.resize(kept);
  }

  void account_rank(int32_t rank) {
    Picoseconds at_ps = 0;
    for (const Busy& stretch : busy_[static_cast<size_t>(rank)]) {
      explain(rank, stretch.first_node, at_ps, stretch.begin_ps);
      account_.ranks[static_cast<size_t>(rank)].busy_ps += stretch.end_ps - stretch.begin_ps;
      at_ps = stretch.end_ps;
    }
    const bool has_work = at_ps > 0;
    const int64_t last = last_node_[static_cast<size_t>(rank)];
    if (!has_work && last >= 0) {
      const Picoseconds end_ps = std::max<Picoseconds>(0, graph_.slice(last).end_ps);
      explain(rank, last, 0, end_ps);
      at_ps = end_ps;
    }
    const OpId at = last < 0 ? OpId{rank, 0} : graph_.id(last);
    const Picoseconds others_ps = std::max(at_ps, last_work_ps_);
    add(rank, BubbleKind::kImbalance, at_ps, others_ps, at);
    if (last >= 0 && has_work) expose_drain(rank, others_ps);
    add(rank, BubbleKind::kDrain, others_ps, account_.makespan_ps, at);
  }

  /// Why `rank` did nothing in [begin, end), before `node` ran.
  void explain(int32_t rank, int64_t node, Picoseconds begin_ps, Picoseconds end_ps) {
    if (begin_ps >= end_ps) return;
    const bool is_first = begin_ps == 0;
    for (const PathPiece& piece : split_at_credits(walk_back(graph_, node, end_ps, begin_ps))) {
      if (piece.is_credit_wait) {
        add(rank, BubbleKind::kCreditWait, piece.segment.begin_ps, piece.segment.end_ps,
            piece.segment.op);
      } else {
        explain_segment(rank, piece.segment, is_first);
      }
    }
  }

  void explain_segment(int32_t rank, const PathSegment& segment, bool is_first) {
    const Picoseconds begin_ps = segment.begin_ps, end_ps = segment.end_ps;
    const bool is_own = segment.op.rank == rank;
    switch (segment.kind) {
      case SegmentKind::kLaunch:
        return add(rank, BubbleKind::kLaunch, begin_ps, end_ps, segment.op);
      case SegmentKind::kStart:
        return add(rank, is_own ? BubbleKind::kLateStart : BubbleKind::kImbalance, begin_ps, end_ps,
                   segment.op);
      case SegmentKind::kOp:
        break;
    }
    const Op& op = graph_.program().op(segment.op);
    if (is_work(op.kind)) {
      return add(rank, BubbleKind::kImbalance, begin_ps, end_ps, segment.op);
    }
    const int64_t node = graph_.node(segment.op);
    const Picoseconds wire_ps = wire_time_ps(graph_, node);
    const Picoseconds length_ps = end_ps - begin_ps;
    const Picoseconds own_ps =
        wire_ps > 0 ? scaled(length_ps, alone_.alone_within(node, wire_ps), wire_ps) : length_ps;
    expose(segment.op, op, own_ps, length_ps - own_ps);
    add(rank, BubbleKind::kContention, begin_ps, end_ps - own_ps, segment.op);
    add(rank, is_first ? BubbleKind::kFill : BubbleKind::kCommunication, end_ps - own_ps, end_ps,
        segment.op);
  }

  /// The transfers that made the rank stay until the end, after all computation.
  void expose_drain(int32_t rank, Picoseconds from_ps) {
    const int64_t last = last_node_[static_cast<size_t>(rank)];
    const Picoseconds end_ps = graph_.slice(last).end_ps;
    if (end_ps <= from_ps) return;
    for (const PathSegment& segment : walk_back(graph_, last, end_ps, from_ps)) {
      const Op& op = graph_.program().op(segment.op);
      if (segment.kind == SegmentKind::kOp && !is_work(op.kind)) {
        expose(segment.op, op, segment.length_ps(), 0);
      }
    }
  }

  void expose(OpId id, const Op& op, Picoseconds communication_ps, Picoseconds contention_ps) {
    const int32_t from = op.kind == OpKind::kSend ? id.rank : op.peer;
    const int32_t to = op.kind == OpKind::kSend ? op.peer : id.rank;
    HopExposure& hop = hops_[{from, to}];
    hop.from = from;
    hop.to = to;
    hop.communication_ps += communication_ps;
    hop.contention_ps += contention_ps;
  }

  void add(int32_t rank, BubbleKind kind, Picoseconds begin_ps, Picoseconds end_ps, OpId op) {
    if (begin_ps >= end_ps) return;
    account_.bubbles.push_back({rank, kind, begin_ps, end_ps, op});
    account_.ranks[static_cast<size_t>(rank)].bubble_ps[static_cast<size_t>(kind)] +=
        end_ps - begin_ps;
  }

  const RunGraph& graph_;
  const AloneTimes& alone_;
  RunAccount account_;
  std::vector<std::vector<Busy>> busy_;  ///< By rank, in order of time.
  std::vector<int64_t> last_node_;       ///< By rank.
  Picoseconds last_work_ps_ = 0;
  std::map<std::pair<int32_t, int32_t>, HopExposure> hops_;
};

}  // namespace

RunAccount account_run(const RunGraph& graph, const AloneTimes& alone) {
  return Accountant(graph, alone).run();
}

}  // namespace ring
