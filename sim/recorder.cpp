#include "sim/recorder.h"

#include <algorithm>
#include <iterator>
#include <limits>

namespace ring {

namespace {

double ratio(Picoseconds a, Picoseconds b) {
  return static_cast<double>(a) / static_cast<double>(b);
}

/// Fills what follows from the ranks, the makespan and the flops.
void summarize(Metrics& metrics) {
  const auto ranks = static_cast<Picoseconds>(metrics.ranks.size());
  Picoseconds longest = 0, shortest = std::numeric_limits<Picoseconds>::max();
  for (size_t i = 0; i < metrics.ranks.size(); ++i) {
    RankMetrics& rank = metrics.ranks[i];
    if (metrics.makespan_ps > 0) rank.busy_share = ratio(rank.compute_ps, metrics.makespan_ps);
    metrics.compute_ps += rank.compute_ps;
    metrics.communication_ps += rank.communication_ps;
    metrics.exposed_ps += rank.exposed_ps;
    if (rank.compute_ps > longest) metrics.busiest_rank = static_cast<int>(i);
    if (rank.compute_ps < shortest) metrics.idlest_rank = static_cast<int>(i);
    longest = std::max(longest, rank.compute_ps);
    shortest = std::min(shortest, rank.compute_ps);
  }
  metrics.overlap = 1;
  if (metrics.communication_ps > 0) {
    metrics.overlap -= ratio(metrics.exposed_ps, metrics.communication_ps);
  }
  if (metrics.compute_ps > 0) {
    metrics.communication_ratio = ratio(metrics.communication_ps, metrics.compute_ps);
    metrics.imbalance = ratio(longest, metrics.compute_ps) * static_cast<double>(ranks) - 1;
  }
  metrics.compute_ps /= ranks;
  metrics.communication_ps /= ranks;
  metrics.exposed_ps /= ranks;
  if (metrics.makespan_ps > 0) {
    metrics.flops_per_s =
        static_cast<double>(metrics.flops) / seconds_from_picoseconds(metrics.makespan_ps);
  }
}

}  // namespace

SimulationRecorder::SimulationRecorder(int ranks, int lanes, bool keep_timeline)
    : lanes_(lanes),
      keep_timeline_(keep_timeline),
      activities_(static_cast<size_t>(ranks)),
      slices_(keep_timeline ? static_cast<size_t>(ranks) * static_cast<size_t>(lanes) : 0) {}

void SimulationRecorder::add(const Slice& slice) {
  const size_t lane = static_cast<size_t>(slice.op.rank) * static_cast<size_t>(lanes_) +
                      static_cast<size_t>(slice.lane);
  slices_[lane].push_back(slice);
}

Metrics SimulationRecorder::metrics(Flops flops, Bytes bytes_sent) const {
  Metrics metrics;
  metrics.flops = flops;
  metrics.bytes_sent = bytes_sent;
  for (const Activity& activity : activities_) {
    RankMetrics& rank = metrics.ranks.emplace_back();
    rank.compute_ps = activity.compute_ps;
    rank.communication_ps = activity.communication_ps;
    rank.waiting_ps = activity.waiting_ps;
    rank.exposed_ps = activity.exposed_ps;
    rank.finish_ps = activity.since_ps;
    metrics.makespan_ps = std::max(metrics.makespan_ps, rank.finish_ps);
  }
  summarize(metrics);
  return metrics;
}

Timeline SimulationRecorder::take_timeline() {
  Timeline timeline;
  timeline.origin = TimelineOrigin::kPredicted;
  timeline.ranks = static_cast<int>(activities_.size());
  timeline.lanes = lanes_;
  size_t count = 0;
  for (const std::vector<Slice>& lane : slices_) count += lane.size();
  timeline.slices.reserve(count);
  for (std::vector<Slice>& lane : slices_) {
    std::move(lane.begin(), lane.end(), std::back_inserter(timeline.slices));
    lane = {};
  }
  return timeline;
}

}  // namespace ring
