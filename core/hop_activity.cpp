#include "core/hop_activity.h"

#include <algorithm>
#include <map>

#include "core/blame.h"

namespace ring {

HopActivity::HopActivity(const Timeline& timeline)
    : timeline_(&timeline), work_(static_cast<size_t>(timeline.ranks)) {
  std::map<std::pair<int32_t, int32_t>, std::vector<Span>> by_hop;
  for (size_t i = 0; i < timeline.slices.size(); ++i) {
    const Slice& slice = timeline.slices[i];
    const Span span{slice.start_ps, slice.end_ps, i};
    if (slice.kind == OpKind::kReceive) {
      by_hop[{slice.peer, slice.op.rank}].push_back(span);
    } else if (is_work(slice.kind)) {
      work_[static_cast<size_t>(slice.op.rank)].push_back(span);
    }
  }
  const auto earlier = [](const Span& a, const Span& b) { return a.begin_ps < b.begin_ps; };
  for (std::vector<Span>& spans : work_) std::stable_sort(spans.begin(), spans.end(), earlier);
  const double makespan = static_cast<double>(timeline.makespan_ps());
  for (auto& [ends, spans] : by_hop) {
    std::stable_sort(spans.begin(), spans.end(), earlier);
    Hop hop{ends.first, ends.second};
    Picoseconds covered_ps = 0, longest_ps = 0;
    for (const Span& span : spans) {
      hop.bytes += timeline.slices[span.slice].bytes;
      hop.busy_ps += std::max<Picoseconds>(0, span.end_ps - std::max(span.begin_ps, covered_ps));
      covered_ps = std::max(covered_ps, span.end_ps);
      longest_ps = std::max(longest_ps, span.end_ps - span.begin_ps);
    }
    if (makespan > 0) hop.busy_share = static_cast<double>(hop.busy_ps) / makespan;
    hops_.push_back(hop);
    longest_ps_.push_back(longest_ps);
    transfers_.push_back(std::move(spans));
  }
}

std::vector<HopTransfer> HopActivity::at(Picoseconds at_ps) const {
  std::vector<HopTransfer> found;
  for (size_t hop = 0; hop < hops_.size(); ++hop) {
    const std::vector<Span>& spans = transfers_[hop];
    // Nothing that began longer ago than the longest transfer is still under way.
    auto span = std::partition_point(spans.begin(), spans.end(), [&](const Span& candidate) {
      return candidate.begin_ps < at_ps - longest_ps_[hop];
    });
    for (; span != spans.end() && span->begin_ps <= at_ps; ++span) {
      if (span->end_ps <= at_ps) continue;
      const double length = static_cast<double>(span->end_ps - span->begin_ps);
      const double bytes = static_cast<double>(timeline_->slices[span->slice].bytes);
      found.push_back({hop, span->slice, static_cast<double>(at_ps - span->begin_ps) / length,
                       bytes / (length * 1e-12)});
    }
  }
  return found;
}

std::vector<Picoseconds> HopActivity::least_slack_ps(
    const std::vector<std::vector<Picoseconds>>& slack_ps) const {
  std::vector<Picoseconds> least(hops_.size(), -1);
  for (size_t hop = 0; hop < hops_.size(); ++hop) {
    for (const Span& span : transfers_[hop]) {
      const OpId op = timeline_->slices[span.slice].op;
      const Picoseconds slack =
          slack_ps[static_cast<size_t>(op.rank)][static_cast<size_t>(op.index)];
      if (slack >= 0 && (least[hop] < 0 || slack < least[hop])) least[hop] = slack;
    }
  }
  return least;
}

std::vector<bool> HopActivity::computing_at(Picoseconds at_ps) const {
  std::vector<bool> busy(work_.size(), false);
  for (size_t rank = 0; rank < work_.size(); ++rank) {
    const std::vector<Span>& spans = work_[rank];
    auto after = std::partition_point(spans.begin(), spans.end(), [at_ps](const Span& candidate) {
      return candidate.begin_ps <= at_ps;
    });
    if (after != spans.begin()) busy[rank] = std::prev(after)->end_ps > at_ps;
  }
  return busy;
}

}  // namespace ring
