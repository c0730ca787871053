#include "core/formats/timeline_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>

namespace ring {
namespace {

enum class LaneUse { kCompute, kSend, kReceive, kMixed };

LaneUse use_of(OpKind kind) {
  switch (kind) {
    case OpKind::kSend:
      return LaneUse::kSend;
    case OpKind::kReceive:
      return LaneUse::kReceive;
    case OpKind::kAttend:
    case OpKind::kMerge:
    case OpKind::kCopy:
    case OpKind::kFinalize:
    case OpKind::kCompute:
    case OpKind::kBackward:
    case OpKind::kDelta:
    case OpKind::kAdd:
      return LaneUse::kCompute;
  }
  return LaneUse::kMixed;
}

std::string_view word_of(LaneUse use) {
  switch (use) {
    case LaneUse::kCompute:
      return "compute";
    case LaneUse::kSend:
      return "send";
    case LaneUse::kReceive:
      return "receive";
    case LaneUse::kMixed:
      return "lane";
  }
  return "lane";
}

/// What each lane is used for, over all ranks.
std::map<int, LaneUse> lane_uses(const Timeline& timeline) {
  std::map<int, LaneUse> uses;
  for (const Slice& slice : timeline.slices) {
    const LaneUse use = use_of(slice.kind);
    const auto [at, is_new] = uses.emplace(slice.lane, use);
    if (!is_new && at->second != use) at->second = LaneUse::kMixed;
  }
  return uses;
}

/// "send" for the only send lane, "send 0", "send 1" where there are several.
std::map<int, std::string> lane_labels(const Timeline& timeline) {
  const std::map<int, LaneUse> uses = lane_uses(timeline);
  std::map<LaneUse, int> total, seen;
  for (const auto& [lane, use] : uses) ++total[use];
  std::map<int, std::string> labels;
  for (const auto& [lane, use] : uses) {
    const int number = seen[use]++;
    if (use == LaneUse::kMixed) {
      labels[lane] = fmt::format("lane {}", lane);
    } else if (total[use] == 1) {
      labels[lane] = word_of(use);
    } else {
      labels[lane] = fmt::format("{} {}", word_of(use), number);
    }
  }
  return labels;
}

void add_bars(const Slice& slice, size_t index, TimelineRow& row) {
  const Picoseconds free_at = row.bars.empty() ? slice.posted_ps : row.bars.back().end_ps;
  const Picoseconds posted = std::max(slice.posted_ps, free_at);
  if (posted < slice.start_ps) row.bars.push_back({index, true, posted, slice.start_ps});
  row.bars.push_back({index, false, slice.start_ps, slice.end_ps});
}

}  // namespace

std::vector<TimelineRow> timeline_rows(const Timeline& timeline) {
  const std::map<int, std::string> labels = lane_labels(timeline);
  std::vector<size_t> order(timeline.slices.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto key = [&](size_t i) {
    const Slice& slice = timeline.slices[i];
    return std::tuple(slice.op.rank, slice.lane, slice.start_ps, slice.end_ps, i);
  };
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return key(a) < key(b); });

  std::vector<TimelineRow> rows;
  size_t lane_begin = 0;  // First row of the lane at hand.
  for (const size_t index : order) {
    const Slice& slice = timeline.slices[index];
    if (rows.empty() || rows[lane_begin].rank != slice.op.rank ||
        rows[lane_begin].lane != slice.lane) {
      lane_begin = rows.size();
    }
    size_t row = lane_begin;
    while (row < rows.size() && rows[row].bars.back().end_ps > slice.start_ps) ++row;
    if (row == rows.size()) {
      const int overflow = static_cast<int>(row - lane_begin);
      const std::string& label = labels.at(slice.lane);
      rows.push_back({slice.op.rank,
                      slice.lane,
                      overflow,
                      overflow == 0 ? label : label + " (overlapping)",
                      {}});
    }
    add_bars(slice, index, rows[row]);
  }
  return rows;
}

}  // namespace ring
