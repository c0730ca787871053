#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <unordered_map>

#include "core/error.h"
#include "core/formats/chakra.h"
#include "core/formats/chakra_node.h"
#include "core/formats/chakra_schema.h"
#include "core/formats/file_io.h"

namespace ring {
namespace {

using namespace chakra;

constexpr int32_t kMostLanes = 4096;

/// How far an op knows each lane to be done, through all it depends on.
using Clock = std::vector<int64_t>;

class RankReader {
 public:
  RankReader(int rank, int ranks, const std::string& what, const ChakraReadOptions& options)
      : rank_(rank), ranks_(ranks), what_(what), options_(options) {}

  void read(std::string_view trace) {
    const std::vector<ChakraNode> nodes = decode_chakra(trace, what_);
    const std::vector<size_t> order = order_chakra(nodes, what_);
    keeps_lanes_ = std::all_of(nodes.begin(), nodes.end(), [](const ChakraNode& node) {
      return node.lane && *node.lane >= 0 && *node.lane < kMostLanes;
    });
    for (const size_t i : order) add(nodes[i]);
  }

  int32_t lanes() const { return static_cast<int32_t>(last_.size()); }

  RankProgram program(int32_t lanes) const {
    OpWriter writer(lanes);
    OpBatch batch;
    for (const auto& [op, deps] : ops_) writer.append(op, deps, batch);
    return {std::move(batch.ops), std::move(batch.deps), {}};
  }

 private:
  struct Placed {
    LanePoint point;
    Clock clock;
  };

  [[noreturn]] void fail(const ChakraNode& node, const std::string& message,
                         std::string hint = {}) const {
    throw_usage(fmt::format("{}: node {} ('{}') {}", what_, node.id, node.name, message),
                std::move(hint));
  }

  void add(const ChakraNode& node) {
    Op op = op_of(node);
    Clock known;
    for (const int64_t dep : node.deps) {
      const Placed& before = placed_.at(dep);
      known.resize(std::max(known.size(), before.clock.size()), -1);
      for (size_t lane = 0; lane < before.clock.size(); ++lane) {
        known[lane] = std::max(known[lane], before.clock[lane]);
      }
    }
    op.lane = lane_for(node, op, known);
    const auto lane = static_cast<size_t>(op.lane);
    if (last_.size() <= lane) last_.resize(lane + 1, -1);
    std::vector<LanePoint> deps;
    for (const int64_t dep : node.deps) {
      const LanePoint point = placed_.at(dep).point;
      if (point.lane != op.lane) deps.push_back(point);
    }
    known.resize(std::max(known.size(), lane + 1), -1);
    known[lane] = ++last_[lane];
    placed_[node.id] = {{op.lane, last_[lane]}, std::move(known)};
    ops_.emplace_back(op, std::move(deps));
  }

  /// A lane at whose end the op comes anyway; computation has a lane of its own.
  int32_t lane_for(const ChakraNode& node, const Op& op, const Clock& known) const {
    if (keeps_lanes_) return static_cast<int32_t>(*node.lane);
    if (op.kind == OpKind::kCompute) return kComputeLane;
    for (size_t lane = 1; lane < last_.size(); ++lane) {
      if (lane < known.size() && known[lane] == last_[lane]) return static_cast<int32_t>(lane);
    }
    const auto next = static_cast<int32_t>(std::max<size_t>(1, last_.size()));
    if (next == kMostLanes) {
      fail(node, fmt::format("would need more than {} lanes", kMostLanes),
           "so many transfers may run at once that a ring program cannot say it");
    }
    return next;
  }

  Op op_of(const ChakraNode& node) {
    Op op;
    switch (node.type) {
      case kSendNode:
      case kReceiveNode:
        fill_transfer(node, op);
        return op;
      case kComputeNode:
        op.fixed_ps = duration_of(node);
        op.flops = std::max<int64_t>(0, node.num_ops.value_or(0));
        return op;
      case kInvalidNode:
      case kMetadataNode:
        return op;  // takes no time, but others may depend on it
      default:
        fail(node, fmt::format("is of type {}", node.type),
             "compute, send and receive are read; expand collectives and memory nodes first");
    }
  }

  Picoseconds duration_of(const ChakraNode& node) const {
    if (node.duration_ps && *node.duration_ps >= 0) return *node.duration_ps;
    if (node.duration_micros < 0) fail(node, "lasts longer than 64 bits can say");
    if (node.duration_micros == 0 && node.num_ops.value_or(0) > 0) {
      if (!(options_.flops_per_s > 0)) {
        fail(node, "states operations, but no duration", "say how fast the processor is");
      }
      return picoseconds_from_seconds(static_cast<double>(*node.num_ops) / options_.flops_per_s);
    }
    return checked_multiply(node.duration_micros, chakra::kMicrosecond,
                            "duration of a Chakra node");
  }

  void fill_transfer(const ChakraNode& node, Op& op) {
    const bool is_send = node.type == kSendNode;
    op.kind = is_send ? OpKind::kSend : OpKind::kReceive;
    const auto peer = is_send ? node.comm_dst : node.comm_src;
    const auto self = is_send ? node.comm_src : node.comm_dst;
    if (!peer || *peer < 0 || *peer >= ranks_) {
      fail(node, peer ? fmt::format("has rank {} as its peer, of {}", *peer, ranks_)
                      : std::string("does not name its peer"));
    }
    if (self && *self != rank_) fail(node, fmt::format("belongs to rank {}", *self));
    if (!node.comm_size || *node.comm_size < 0) fail(node, "does not state its bytes");
    op.peer = static_cast<int32_t>(*peer);
    op.bytes = *node.comm_size;
    op.protocol =
        node.protocol == name(Protocol::kRendezvous) ? Protocol::kRendezvous : Protocol::kEager;
    if (!is_send) op.protocol = Op().protocol;
    const int64_t tag = node.comm_tag.value_or(0);
    if (tag < 0 || tag > std::numeric_limits<uint32_t>::max()) {
      fail(node, fmt::format("has tag {}", tag), "tags are 32-bit numbers");
    }
    // The n-th use of a tag pairs with the n-th use of it on the other side.
    op.message = tag + (repeats_[{is_send, op.peer, tag}]++ << 32);
  }

  const int rank_, ranks_;
  const std::string& what_;
  const ChakraReadOptions& options_;
  bool keeps_lanes_ = false;
  std::unordered_map<int64_t, Placed> placed_;
  std::vector<int64_t> last_;  ///< Position of the last op of each lane.
  std::vector<std::pair<Op, std::vector<LanePoint>>> ops_;
  std::map<std::tuple<bool, int32_t, int64_t>, int64_t> repeats_;
};

}  // namespace

RingProgram parse_chakra(const std::vector<std::string>& traces,
                         const std::vector<std::string>& names, const ChakraReadOptions& options) {
  RING_ASSERT(traces.size() == names.size());
  if (traces.empty()) throw_usage("there is no Chakra trace to read");
  RingProgram program;
  program.name = "chakra";
  program.lanes = 1;
  std::vector<RankReader> readers;
  for (size_t rank = 0; rank < traces.size(); ++rank) {
    readers.emplace_back(static_cast<int>(rank), static_cast<int>(traces.size()), names[rank],
                         options);
    readers.back().read(traces[rank]);
    program.lanes = std::max(program.lanes, readers.back().lanes());
  }
  for (const RankReader& reader : readers) {
    program.rank_programs.push_back(reader.program(program.lanes));
  }
  return program;
}

RingProgram read_chakra(const std::string& prefix, const ChakraReadOptions& options) {
  std::vector<std::string> traces, names;
  for (int rank = 0;; ++rank) {
    const std::string path = fmt::format("{}.{}.et", prefix, rank);
    std::error_code ignored;
    if (rank > 0 && !std::filesystem::exists(path, ignored)) break;
    traces.push_back(read_file(path));
    names.push_back(path);
  }
  RingProgram program = parse_chakra(traces, names, options);
  program.name = prefix;
  return program;
}

}  // namespace ring
