#include "core/op_flows.h"

#include <algorithm>
#include <tuple>

namespace ring {
namespace {

FlowKind flow_kind(ReleaseKind kind) {
  switch (kind) {
    case ReleaseKind::kPeer:
      return FlowKind::kMessage;
    case ReleaseKind::kBufferCredit:
      return FlowKind::kBufferCredit;
    case ReleaseKind::kStartOfRun:
    case ReleaseKind::kLaneOrder:
    case ReleaseKind::kDependency:
      return FlowKind::kDependency;
  }
  return FlowKind::kDependency;
}

}  // namespace

std::string_view name(FlowKind kind) {
  switch (kind) {
    case FlowKind::kMessage:
      return "message";
    case FlowKind::kDependency:
      return "dependency";
    case FlowKind::kBufferCredit:
      return "buffer credit";
  }
  return "?";
}

OpFlows::OpFlows(const RunGraph& graph) {
  const Slice* const first = graph.timeline().slices.data();
  const auto index_of = [&](int64_t node) {
    return static_cast<uint32_t>(&graph.slice(node) - first);
  };
  std::vector<Edge> edges;
  for (int64_t node = 0; node < graph.nodes(); ++node) {
    if (!graph.ran(node)) continue;
    for (const Predecessor& before : graph.predecessors(node)) {
      if (before.kind == ReleaseKind::kLaneOrder || before.kind == ReleaseKind::kPeer) continue;
      edges.push_back({index_of(before.node), index_of(node), flow_kind(before.kind)});
    }
    const int64_t other = graph.partner(node);
    if (graph.op(node).kind == OpKind::kReceive && other >= 0 && graph.ran(other)) {
      edges.push_back({index_of(other), index_of(node), FlowKind::kMessage});
    }
  }
  store(std::move(edges), graph.timeline().slices.size());
}

OpFlows::OpFlows(const Timeline& timeline) {
  struct End {
    int32_t from, to;
    Picoseconds start_ps;
    uint32_t slice;
    auto key() const { return std::tuple(from, to, start_ps, slice); }
  };
  std::vector<End> sends, receives;
  for (uint32_t i = 0; i < timeline.slices.size(); ++i) {
    const Slice& slice = timeline.slices[i];
    if (slice.kind == OpKind::kSend) {
      sends.push_back({slice.op.rank, slice.peer, slice.start_ps, i});
    } else if (slice.kind == OpKind::kReceive) {
      receives.push_back({slice.peer, slice.op.rank, slice.start_ps, i});
    }
  }
  const auto by_key = [](const End& a, const End& b) { return a.key() < b.key(); };
  std::sort(sends.begin(), sends.end(), by_key);
  std::sort(receives.begin(), receives.end(), by_key);
  std::vector<Edge> edges;
  const auto pair_of = [](const End& end) { return std::pair(end.from, end.to); };
  for (size_t s = 0, r = 0; s < sends.size() && r < receives.size();) {
    const auto send = pair_of(sends[s]), receive = pair_of(receives[r]);
    if (send == receive) {
      edges.push_back({sends[s].slice, receives[r].slice, FlowKind::kMessage});
    }
    if (send <= receive) ++s;
    if (receive <= send) ++r;
  }
  store(std::move(edges), timeline.slices.size());
}

void OpFlows::store(std::vector<Edge> edges, size_t slices) {
  const auto fill = [&](std::vector<uint32_t>& begin, std::vector<Flow>& flows, auto near,
                        auto far) {
    std::sort(edges.begin(), edges.end(), [&](const Edge& a, const Edge& b) {
      return std::tuple(a.*near, a.kind, a.*far) < std::tuple(b.*near, b.kind, b.*far);
    });
    begin.assign(slices + 1, 0);
    flows.reserve(edges.size());
    for (const Edge& edge : edges) {
      ++begin[edge.*near + size_t{1}];
      flows.push_back({edge.*far, edge.kind});
    }
    for (size_t i = 0; i < slices; ++i) begin[i + 1] += begin[i];
  };
  fill(in_begin_, in_, &Edge::to, &Edge::from);
  fill(out_begin_, out_, &Edge::from, &Edge::to);
}

}  // namespace ring
