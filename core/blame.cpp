#include "core/blame.h"

#include <algorithm>
#include <map>
#include <span>
#include <tuple>
#include <utility>

namespace ring {

std::string_view name(BlameKind kind) {
  switch (kind) {
    case BlameKind::kAttend:
      return "attend";
    case BlameKind::kCompute:
      return "compute";
    case BlameKind::kMerge:
      return "merge";
    case BlameKind::kFinalize:
      return "finalize";
    case BlameKind::kCopy:
      return "copy";
    case BlameKind::kHop:
      return "exposed hop";
    case BlameKind::kContention:
      return "contention";
    case BlameKind::kImbalance:
      return "imbalance";
    case BlameKind::kCreditWait:
      return "credit wait";
    case BlameKind::kFill:
      return "fill";
    case BlameKind::kDrain:
      return "drain";
    case BlameKind::kLaunch:
      return "launch";
    case BlameKind::kLateStart:
      return "late start";
    case BlameKind::kBackward:
      return "backward";
    case BlameKind::kGradients:
      return "gradients";
  }
  return "?";
}

bool is_work(OpKind kind) {
  switch (kind) {
    case OpKind::kAttend:
    case OpKind::kMerge:
    case OpKind::kCopy:
    case OpKind::kFinalize:
    case OpKind::kCompute:
    case OpKind::kBackward:
    case OpKind::kDelta:
    case OpKind::kAdd:
      return true;
    case OpKind::kSend:
    case OpKind::kReceive:
      return false;
  }
  return false;
}

Picoseconds scaled(Picoseconds length_ps, Picoseconds part_ps, Picoseconds whole_ps) {
  if (whole_ps <= 0) return 0;
  __extension__ using Wide = __int128;
  return static_cast<Picoseconds>(static_cast<Wide>(length_ps) * part_ps / whole_ps);
}

namespace {

struct Interval {
  Picoseconds begin_ps = 0, end_ps = 0;
  Picoseconds length_ps() const { return end_ps - begin_ps; }
  Interval clipped(Picoseconds low_ps, Picoseconds high_ps) const {
    const Picoseconds begin = std::clamp(begin_ps, low_ps, std::max(low_ps, high_ps));
    return {begin, std::clamp(end_ps, begin, std::max(begin, high_ps))};
  }
};

class PathBlamer {
 public:
  PathBlamer(const RunGraph& graph, const CriticalPath& path, const AloneTimes& alone)
      : graph_(graph), path_(path), alone_(alone) {}

  Blame run() {
    find_work_windows();
    for (const PathPiece& piece : split_at_credits(path_.segments)) {
      if (piece.is_credit_wait) {
        add(BlameKind::kCreditWait, piece.segment.length_ps(), piece.credit_rank);
      } else {
        blame_segment(piece.segment);
      }
    }
    for (const auto& [key, group] : work_) blame_work(key, group);
    Blame blame;
    blame.makespan_ps = path_.makespan_ps;
    for (const auto& [key, time_ps] : sums_) {
      const auto [kind, rank, peer, link] = key;
      if (time_ps == 0) continue;
      blame.items.push_back({kind, rank, peer, link, time_ps});
      blame.by_kind_ps[static_cast<size_t>(kind)] += time_ps;
    }
    std::stable_sort(blame.items.begin(), blame.items.end(),
                     [](const BlameItem& a, const BlameItem& b) { return a.time_ps > b.time_ps; });
    return blame;
  }

 private:
  struct WorkKey {
    OpKind kind;
    int32_t rank, step;
    auto operator<=>(const WorkKey&) const = default;
  };
  struct WorkGroup {
    Picoseconds time_ps = 0, alone_ps = 0;
  };

  void add(BlameKind kind, Picoseconds time_ps, int32_t rank, int32_t peer = -1,
           int32_t link = -1) {
    sums_[{kind, rank, peer, link}] += time_ps;
  }

  void find_work_windows() {
    first_work_ps_.assign(static_cast<size_t>(graph_.program().ranks()), -1);
    for (const Slice& slice : graph_.timeline().slices) {
      if (!is_work(slice.kind) || slice.end_ps <= slice.start_ps) continue;
      Picoseconds& first = first_work_ps_[static_cast<size_t>(slice.op.rank)];
      if (first < 0 || slice.start_ps < first) first = slice.start_ps;
      last_work_ps_ = std::max(last_work_ps_, slice.end_ps);
      step_total_ps_[{slice.kind, slice.step}] += slice.end_ps - slice.start_ps;
    }
  }

  void blame_segment(const PathSegment& segment) {
    const Interval piece{segment.begin_ps, segment.end_ps};
    switch (segment.kind) {
      case SegmentKind::kLaunch:
        return add(BlameKind::kLaunch, piece.length_ps(), segment.op.rank);
      case SegmentKind::kStart:
        return add(BlameKind::kLateStart, piece.length_ps(), segment.op.rank);
      case SegmentKind::kOp:
        break;
    }
    const Op& op = graph_.program().op(segment.op);
    if (!is_work(op.kind)) return blame_transfer(segment.op, op, piece);
    const int64_t node = graph_.node(segment.op);
    const Slice& slice = graph_.slice(node);
    const Picoseconds duration_ps = slice.end_ps - slice.start_ps;
    WorkGroup& group = work_[{op.kind, segment.op.rank, op.step}];
    group.time_ps += piece.length_ps();
    group.alone_ps +=
        scaled(piece.length_ps(), alone_.alone_within(node, duration_ps), duration_ps);
  }

  void blame_transfer(OpId id, const Op& op, Interval piece) {
    const int32_t from = op.kind == OpKind::kSend ? id.rank : op.peer;
    const int32_t to = op.kind == OpKind::kSend ? op.peer : id.rank;
    const int64_t node = graph_.node(id);
    const Picoseconds wire_ps = wire_time_ps(graph_, node);
    const Picoseconds own_ps =
        wire_ps > 0 ? scaled(piece.length_ps(), alone_.alone_within(node, wire_ps), wire_ps)
                    : piece.length_ps();
    blame_contention(node, from, to, piece.length_ps() - own_ps);
    const Picoseconds first_ps =
        to >= 0 && to < graph_.program().ranks() ? first_work_ps_[static_cast<size_t>(to)] : -1;
    const Picoseconds fill_end_ps = std::max<Picoseconds>(0, first_ps);
    const Picoseconds drain_ps =
        first_ps < 0 ? path_.makespan_ps : std::max(last_work_ps_, fill_end_ps);
    const auto part_ps = [&](Interval part) {
      return scaled(own_ps, part.length_ps(), piece.length_ps());
    };
    const Picoseconds filled_ps = part_ps(piece.clipped(0, fill_end_ps));
    const Picoseconds drained_ps = part_ps(piece.clipped(drain_ps, path_.makespan_ps));
    add(BlameKind::kFill, filled_ps, to, from);
    add(BlameKind::kDrain, drained_ps, to, from);
    add(BlameKind::kHop, own_ps - filled_ps - drained_ps, to, from);
  }

  void blame_contention(int64_t node, int32_t from, int32_t to, Picoseconds time_ps) {
    const int32_t link = alone_.link_of(node);
    if (link < 0) {
      add(BlameKind::kContention, time_ps, to, from);
    } else {
      add(BlameKind::kContention, time_ps, -1, -1, link);
    }
  }

  void blame_work(const WorkKey& key, const WorkGroup& group) {
    const bool is_main = computes_pairs(key.kind) || key.kind == OpKind::kCompute;
    const Picoseconds mean_ps = step_total_ps_[{key.kind, key.step}] / graph_.program().ranks();
    const Picoseconds excess_ps = is_main ? std::max<Picoseconds>(0, group.time_ps - mean_ps) : 0;
    const Picoseconds rest_ps = group.time_ps - excess_ps;
    const Picoseconds shared_ps = std::max<Picoseconds>(0, rest_ps - group.alone_ps);
    add(BlameKind::kImbalance, excess_ps, key.rank);
    add(BlameKind::kContention, shared_ps, key.rank);
    add(kind_of(key.kind), rest_ps - shared_ps, key.rank);
  }

  static BlameKind kind_of(OpKind kind) {
    switch (kind) {
      case OpKind::kAttend:
        return BlameKind::kAttend;
      case OpKind::kCompute:
        return BlameKind::kCompute;
      case OpKind::kMerge:
        return BlameKind::kMerge;
      case OpKind::kFinalize:
        return BlameKind::kFinalize;
      case OpKind::kCopy:
        return BlameKind::kCopy;
      case OpKind::kBackward:
        return BlameKind::kBackward;
      case OpKind::kDelta:
      case OpKind::kAdd:
        return BlameKind::kGradients;
      case OpKind::kSend:
      case OpKind::kReceive:
        break;
    }
    return BlameKind::kHop;
  }

  const RunGraph& graph_;
  const CriticalPath& path_;
  const AloneTimes& alone_;
  std::vector<Picoseconds> first_work_ps_;  ///< By rank; -1: computes nothing.
  Picoseconds last_work_ps_ = 0;
  std::map<std::pair<OpKind, int32_t>, Picoseconds> step_total_ps_;  ///< Over all ranks.
  std::map<WorkKey, WorkGroup> work_;
  std::map<std::tuple<BlameKind, int32_t, int32_t, int32_t>, Picoseconds> sums_;
};

}  // namespace

Blame blame_path(const RunGraph& graph, const CriticalPath& path, const AloneTimes& alone) {
  return PathBlamer(graph, path, alone).run();
}

}  // namespace ring
