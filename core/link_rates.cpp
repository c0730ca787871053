#include "core/link_rates.h"

#include <algorithm>
#include <map>
#include <utility>

namespace ring {
namespace {

struct Change {
  Picoseconds at_ps = 0;
  double bytes_per_s = 0;
  int flows = 0;
};

struct Traffic {
  std::vector<Change> changes;
  Bytes bytes = 0;
};

using Pair = std::pair<int32_t, int32_t>;

void add(const Slice& slice, Traffic& traffic) {
  traffic.bytes += slice.bytes;
  if (slice.end_ps <= slice.start_ps || slice.bytes <= 0) return;
  const double rate =
      static_cast<double>(slice.bytes) / seconds_from_picoseconds(slice.end_ps - slice.start_ps);
  traffic.changes.push_back({slice.start_ps, rate, 1});
  traffic.changes.push_back({slice.end_ps, -rate, -1});
}

StepCurve curve_of(std::vector<Change> changes) {
  std::stable_sort(changes.begin(), changes.end(),
                   [](const Change& a, const Change& b) { return a.at_ps < b.at_ps; });
  std::vector<StepCurve::Step> steps;
  steps.reserve(changes.size());
  double rate = 0;
  int flows = 0;
  for (const Change& change : changes) {
    flows += change.flows;
    rate = flows == 0 ? 0 : std::max(0.0, rate + change.bytes_per_s);  // No rest of rounding.
    steps.push_back({change.at_ps, rate});
  }
  return StepCurve(std::move(steps));
}

std::map<Pair, Traffic> traffic_of(const Timeline& timeline) {
  std::map<Pair, Traffic> received, sent;
  for (const Slice& slice : timeline.slices) {
    if (slice.kind == OpKind::kReceive) add(slice, received[{slice.peer, slice.op.rank}]);
    if (slice.kind == OpKind::kSend) add(slice, sent[{slice.op.rank, slice.peer}]);
  }
  received.merge(sent);
  return received;
}

}  // namespace

std::vector<LinkRate> link_rates(const Timeline& timeline, int most_per_rank) {
  std::map<Pair, Traffic> traffic = traffic_of(timeline);
  std::vector<LinkRate> rates;
  for (auto at = traffic.begin(); at != traffic.end();) {
    const int32_t from = at->first.first;
    auto end = at;
    while (end != traffic.end() && end->first.first == from) ++end;
    const auto links = static_cast<int32_t>(std::distance(at, end));
    if (links > most_per_rank) {
      Traffic all;
      for (; at != end; ++at) {
        all.bytes += at->second.bytes;
        all.changes.insert(all.changes.end(), at->second.changes.begin(), at->second.changes.end());
      }
      rates.push_back({from, -1, links, all.bytes, curve_of(std::move(all.changes))});
      continue;
    }
    for (; at != end; ++at) {
      rates.push_back(
          {from, at->first.second, 1, at->second.bytes, curve_of(std::move(at->second.changes))});
    }
  }
  return rates;
}

}  // namespace ring
