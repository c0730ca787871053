#include "core/metrics.h"

#include <fmt/format.h>

#include <algorithm>

namespace ring {
namespace {

struct Interval {
  Picoseconds begin, end;
};

/// Sorted disjoint union.
std::vector<Interval> unite(std::vector<Interval> intervals) {
  std::sort(intervals.begin(), intervals.end(),
            [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
  std::vector<Interval> united;
  for (const Interval& interval : intervals) {
    if (interval.begin >= interval.end) continue;
    if (!united.empty() && interval.begin <= united.back().end) {
      united.back().end = std::max(united.back().end, interval.end);
    } else {
      united.push_back(interval);
    }
  }
  return united;
}

Picoseconds length(const std::vector<Interval>& united) {
  Picoseconds sum = 0;
  for (const Interval& interval : united) sum += interval.end - interval.begin;
  return sum;
}

/// Length of the part of `a` that `b` does not cover; both united.
Picoseconds uncovered(const std::vector<Interval>& a, const std::vector<Interval>& b) {
  Picoseconds covered = 0;
  size_t j = 0;
  for (const Interval& interval : a) {
    while (j < b.size() && b[j].end <= interval.begin) ++j;
    for (size_t k = j; k < b.size() && b[k].begin < interval.end; ++k) {
      covered += std::min(interval.end, b[k].end) - std::max(interval.begin, b[k].begin);
    }
  }
  return length(a) - covered;
}

bool is_communication(OpKind kind) { return kind == OpKind::kSend || kind == OpKind::kReceive; }

struct RankIntervals {
  std::vector<Interval> compute, transfer, waiting;
};

RankMetrics measure_rank(RankIntervals intervals, Picoseconds finish_ps, Picoseconds makespan_ps) {
  RankMetrics metrics;
  const auto compute = unite(std::move(intervals.compute));
  const auto transfer = unite(std::move(intervals.transfer));
  const auto waiting = unite(std::move(intervals.waiting));
  metrics.compute_ps = length(compute);
  metrics.communication_ps = length(transfer);
  metrics.waiting_ps = uncovered(waiting, transfer);
  metrics.exposed_ps = uncovered(transfer, compute);
  metrics.finish_ps = finish_ps;
  metrics.busy_share =
      makespan_ps > 0 ? static_cast<double>(metrics.compute_ps) / static_cast<double>(makespan_ps)
                      : 0;
  return metrics;
}

void summarize(Metrics& metrics) {
  const auto ranks = static_cast<Picoseconds>(metrics.ranks.size());
  if (ranks == 0) return;
  Picoseconds longest = 0;
  for (size_t i = 0; i < metrics.ranks.size(); ++i) {
    const RankMetrics& rank = metrics.ranks[i];
    metrics.compute_ps += rank.compute_ps;
    metrics.communication_ps += rank.communication_ps;
    metrics.exposed_ps += rank.exposed_ps;
    longest = std::max(longest, rank.compute_ps);
    const int number = static_cast<int>(i);
    const auto compute_of = [&](int other) {
      return metrics.ranks[static_cast<size_t>(other)].compute_ps;
    };
    if (rank.compute_ps > compute_of(metrics.busiest_rank)) metrics.busiest_rank = number;
    if (rank.compute_ps < compute_of(metrics.idlest_rank)) metrics.idlest_rank = number;
  }
  const auto ratio = [](Picoseconds a, Picoseconds b) {
    return static_cast<double>(a) / static_cast<double>(b);
  };
  if (metrics.compute_ps > 0) {
    metrics.communication_ratio = ratio(metrics.communication_ps, metrics.compute_ps);
    metrics.imbalance = ratio(longest * ranks, metrics.compute_ps) - 1;
  }
  metrics.overlap =
      metrics.communication_ps > 0 ? 1 - ratio(metrics.exposed_ps, metrics.communication_ps) : 1;
  metrics.compute_ps /= ranks;
  metrics.communication_ps /= ranks;
  metrics.exposed_ps /= ranks;
  if (metrics.makespan_ps > 0) {
    metrics.flops_per_s =
        static_cast<double>(metrics.flops) / seconds_from_picoseconds(metrics.makespan_ps);
  }
}

}  // namespace

Metrics measure(const Timeline& timeline) {
  Metrics metrics;
  metrics.makespan_ps = timeline.makespan_ps();
  metrics.is_complete = timeline.is_complete;
  std::vector<RankIntervals> intervals(static_cast<size_t>(timeline.ranks));
  std::vector<Picoseconds> finish_ps(static_cast<size_t>(timeline.ranks), 0);
  for (const Slice& slice : timeline.slices) {
    const auto rank = static_cast<size_t>(slice.op.rank);
    finish_ps[rank] = std::max(finish_ps[rank], slice.end_ps);
    metrics.flops = checked_add(metrics.flops, slice.flops, "the sum of flops");
    if (slice.kind == OpKind::kSend) {
      metrics.bytes_sent = checked_add(metrics.bytes_sent, slice.bytes, "the sum of bytes sent");
    }
    if (is_communication(slice.kind)) {
      intervals[rank].transfer.push_back({slice.start_ps, slice.end_ps});
      if (slice.kind == OpKind::kReceive) {
        intervals[rank].waiting.push_back({slice.posted_ps, slice.start_ps});
      }
    } else {
      intervals[rank].compute.push_back({slice.start_ps, slice.end_ps});
    }
  }
  for (size_t rank = 0; rank < intervals.size(); ++rank) {
    metrics.ranks.push_back(
        measure_rank(std::move(intervals[rank]), finish_ps[rank], metrics.makespan_ps));
  }
  summarize(metrics);
  return metrics;
}

std::string describe_balance(const Metrics& metrics) {
  if (metrics.ranks.size() < 2) return "one rank: nothing to balance";
  const auto share = [&](int rank) {
    return metrics.ranks[static_cast<size_t>(rank)].busy_share * 100;
  };
  static constexpr double kBalanced = 0.05;
  if (metrics.imbalance < kBalanced) {
    return fmt::format("balanced: every rank computes {:.0f} to {:.0f} % of the time",
                       share(metrics.idlest_rank), share(metrics.busiest_rank));
  }
  return fmt::format(
      "unbalanced: rank {} computes {:.0f} % of the time, rank {} {:.0f} %; the "
      "longest computes {:.0f} % more than the mean",
      metrics.busiest_rank, share(metrics.busiest_rank), metrics.idlest_rank,
      share(metrics.idlest_rank), metrics.imbalance * 100);
}

}  // namespace ring
