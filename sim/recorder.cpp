#include "sim/recorder.h"

#include <algorithm>
#include <iterator>

#include "core/error.h"

namespace ring {

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

Metrics SimulationRecorder::metrics(__int128 flops, Bytes bytes_sent, int all_ranks) const {
  const int64_t copies = all_ranks / static_cast<int>(activities_.size());
  Metrics metrics;
  metrics.flops = flops * copies;
  metrics.bytes_sent = checked_multiply(bytes_sent, copies, "the sum of bytes sent");
  metrics.ranks.reserve(static_cast<size_t>(all_ranks));
  for (size_t i = 0; i < static_cast<size_t>(all_ranks); ++i) {
    const Activity& activity = activities_[i % activities_.size()];
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
