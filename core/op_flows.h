// OpFlows: which slices of a timeline led to which others: messages, results, freed buffers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/run_graph.h"
#include "core/timeline.h"

namespace ring {

enum class FlowKind : uint8_t {
  kMessage,       ///< From a send to its receive.
  kDependency,    ///< From an op to one that uses its result.
  kBufferCredit,  ///< From the last reader of a buffer to the receive that fills it anew.
};
std::string_view name(FlowKind kind);

/// The other end of a flow.
struct Flow {
  uint32_t slice = 0;  ///< Index into Timeline::slices.
  FlowKind kind = FlowKind::kMessage;
};

class OpFlows {
 public:
  OpFlows() = default;
  /// From a program: all three kinds.
  explicit OpFlows(const RunGraph& graph);
  /// Without a program: the n-th receive of a pair of ranks is taken to be of the n-th send.
  explicit OpFlows(const Timeline& timeline);

  /// What led to the slice, and what it led to; order in the lane is not counted.
  std::span<const Flow> into(uint32_t slice) const { return part(in_begin_, in_, slice); }
  std::span<const Flow> out_of(uint32_t slice) const { return part(out_begin_, out_, slice); }
  int64_t count() const { return std::ssize(in_); }

 private:
  struct Edge {
    uint32_t from, to;
    FlowKind kind;
  };
  void store(std::vector<Edge> edges, size_t slices);
  static std::span<const Flow> part(const std::vector<uint32_t>& begin,
                                    const std::vector<Flow>& flows, uint32_t slice) {
    if (slice + size_t{1} >= begin.size()) return {};
    return {flows.data() + begin[slice], begin[slice + size_t{1}] - begin[slice]};
  }

  std::vector<uint32_t> in_begin_, out_begin_;
  std::vector<Flow> in_, out_;
};

}  // namespace ring
