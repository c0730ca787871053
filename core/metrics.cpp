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

RankMetrics measure_rank(RankIntervals intervals, Picoseconds finish_ps) {
  RankMetrics metrics;
  const auto compute = unite(std::move(intervals.compute));
  const auto transfer = unite(std::move(intervals.transfer));
  const auto waiting = unite(std::move(intervals.waiting));
  metrics.compute_ps = length(compute);
  metrics.communication_ps = length(transfer);
  metrics.waiting_ps = uncovered(waiting, transfer);
  metrics.exposed_ps = uncovered(transfer, compute);
  metrics.finish_ps = finish_ps;
  return metrics;
}

}  // namespace

void summarize(Metrics& metrics) {
  if (metrics.ranks.empty()) return;
  const auto ranks = static_cast<Picoseconds>(metrics.ranks.size());
  // A hundred thousand ranks of minutes leave 64 bits.
  __int128 compute_ps = 0, communication_ps = 0, exposed_ps = 0;
  for (size_t i = 0; i < metrics.ranks.size(); ++i) {
    RankMetrics& rank = metrics.ranks[i];
    if (metrics.makespan_ps > 0) {
      rank.busy_share =
          static_cast<double>(rank.compute_ps) / static_cast<double>(metrics.makespan_ps);
    }
    compute_ps += rank.compute_ps;
    communication_ps += rank.communication_ps;
    exposed_ps += rank.exposed_ps;
    const int number = static_cast<int>(i);
    const auto compute_of = [&](int other) {
      return metrics.ranks[static_cast<size_t>(other)].compute_ps;
    };
    if (rank.compute_ps > compute_of(metrics.busiest_rank)) metrics.busiest_rank = number;
    if (rank.compute_ps < compute_of(metrics.idlest_rank)) metrics.idlest_rank = number;
  }
  const auto ratio = [](__int128 a, __int128 b) {
    return static_cast<double>(a) / static_cast<double>(b);
  };
  if (compute_ps > 0) {
    const RankMetrics& busiest = metrics.ranks[static_cast<size_t>(metrics.busiest_rank)];
    metrics.communication_ratio = ratio(communication_ps, compute_ps);
    metrics.imbalance = ratio(static_cast<__int128>(busiest.compute_ps) * ranks, compute_ps) - 1;
  }
  metrics.overlap = communication_ps > 0 ? 1 - ratio(exposed_ps, communication_ps) : 1;
  metrics.compute_ps = static_cast<Picoseconds>(compute_ps / ranks);
  metrics.communication_ps = static_cast<Picoseconds>(communication_ps / ranks);
  metrics.exposed_ps = static_cast<Picoseconds>(exposed_ps / ranks);
  if (metrics.makespan_ps > 0) {
    metrics.flops_per_s =
        static_cast<double>(metrics.flops) / seconds_from_picoseconds(metrics.makespan_ps);
  }
}

Metrics measure(const Timeline& timeline) {
  Metrics metrics;
  metrics.makespan_ps = timeline.makespan_ps();
  metrics.is_complete = timeline.is_complete;
  std::vector<RankIntervals> intervals(static_cast<size_t>(timeline.ranks));
  std::vector<Picoseconds> finish_ps(static_cast<size_t>(timeline.ranks), 0);
  for (const Slice& slice : timeline.slices) {
    const auto rank = static_cast<size_t>(slice.op.rank);
    finish_ps[rank] = std::max(finish_ps[rank], slice.end_ps);
    metrics.flops += slice.flops;
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
    metrics.ranks.push_back(measure_rank(std::move(intervals[rank]), finish_ps[rank]));
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
    const std::string least = fmt::format("{:.0f}", share(metrics.idlest_rank));
    const std::string most = fmt::format("{:.0f}", share(metrics.busiest_rank));
    return fmt::format("balanced: every rank computes {} % of the time",
                       least == most ? most : least + " to " + most);
  }
  return fmt::format(
      "unbalanced: rank {} computes {:.0f} % of the time, rank {} {:.0f} %; the "
      "longest computes {:.0f} % more than the mean",
      metrics.busiest_rank, share(metrics.busiest_rank), metrics.idlest_rank,
      share(metrics.idlest_rank), metrics.imbalance * 100);
}

}  // namespace ring
