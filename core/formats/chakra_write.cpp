#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>

#include "core/cost_model.h"
#include "core/error.h"
#include "core/formats/chakra.h"
#include "core/formats/chakra_schema.h"
#include "core/formats/file_io.h"
#include "core/formats/protobuf_wire.h"

namespace ring {
namespace {

using namespace chakra;

void append_message(std::string& stream, const WireWriter& message) {
  WireWriter::append_varint(stream, message.bytes().size());
  stream += message.bytes();
}

void add_attribute(WireWriter& node, std::string_view name, int field, int64_t value) {
  WireWriter attribute;
  attribute.text(kAttributeName, name);
  attribute.integer(field, value);
  node.text(kNodeAttribute, attribute.bytes());
}

void add_text_attribute(WireWriter& node, std::string_view name, std::string_view value) {
  WireWriter attribute;
  attribute.text(kAttributeName, name);
  attribute.text(kAttributeString, value);
  node.text(kNodeAttribute, attribute.bytes());
}

/// Tags are 32-bit numbers in this schema; messages between two ranks are numbered in their order.
class Tags {
 public:
  explicit Tags(const RingProgram& program) {
    for (int rank = 0; rank < program.ranks(); ++rank) {
      for (const Op& op : program.rank_programs[static_cast<size_t>(rank)].ops) {
        if (op.kind == OpKind::kSend) messages_[{rank, op.peer}].push_back(op.message);
        if (op.kind == OpKind::kReceive) messages_[{op.peer, rank}].push_back(op.message);
      }
    }
    for (auto& [ends, messages] : messages_) {
      std::sort(messages.begin(), messages.end());
      messages.erase(std::unique(messages.begin(), messages.end()), messages.end());
      if (messages.size() > size_t{1} << 31) {
        throw_usage(
            fmt::format("{} messages from rank {} to rank {} are more than a Chakra trace "
                        "can tell apart",
                        messages.size(), ends.first, ends.second));
      }
    }
  }

  int64_t tag(int from, int to, int64_t message) const {
    const auto& messages = messages_.at({from, to});
    return std::lower_bound(messages.begin(), messages.end(), message) - messages.begin();
  }

 private:
  std::map<std::pair<int, int>, std::vector<int64_t>> messages_;
};

/// How long a computation takes.
using OpTime = std::function<Picoseconds(OpId, const Op&)>;

OpTime times_on(const RingProgram& program, const Machine& machine) {
  return [&](OpId /*id*/, const Op& op) {
    const Problem* problem = program.has_attention ? &program.problem : nullptr;
    return op.kind == OpKind::kCompute ? op.fixed_ps
                                       : picoseconds_from_seconds(op_seconds(machine, problem, op));
  };
}

OpTime times_in(const RingProgram& program, const Timeline& timeline) {
  std::map<OpId, Picoseconds> times;
  for (const Slice& slice : timeline.slices) {
    const bool is_known =
        slice.op.rank >= 0 && slice.op.rank < program.ranks() && slice.op.index >= 0 &&
        slice.op.index < std::ssize(program.rank_programs[static_cast<size_t>(slice.op.rank)].ops);
    if (!is_known) throw_usage("the timeline names ops that the program does not have");
    times[slice.op] = slice.end_ps - slice.start_ps;
  }
  return [times = std::move(times)](OpId id, const Op& /*op*/) {
    const auto found = times.find(id);
    return found == times.end() ? Picoseconds{0} : found->second;
  };
}

class TraceWriter {
 public:
  TraceWriter(const RingProgram& program, OpTime op_time)
      : program_(program), op_time_(std::move(op_time)), tags_(program) {}

  int ranks() const { return program_.ranks(); }

  std::vector<std::string> traces() const {
    std::vector<std::string> traces;
    for (int rank = 0; rank < ranks(); ++rank) traces.push_back(trace(rank));
    return traces;
  }

  std::string trace(int rank) const {
    std::string stream;
    WireWriter metadata;
    metadata.text(kMetadataVersion, "0.0.4");
    append_message(stream, metadata);
    const RankProgram& ops = program_.rank_programs[static_cast<size_t>(rank)];
    std::vector<std::vector<int64_t>> lanes(static_cast<size_t>(program_.lanes));
    for (int64_t i = 0; i < std::ssize(ops.ops); ++i) {
      const Op& op = ops.ops[static_cast<size_t>(i)];
      auto& lane = lanes[static_cast<size_t>(op.lane)];
      std::vector<int64_t> deps;
      if (!lane.empty()) deps.push_back(lane.back());
      for (const LanePoint& dep : ops.deps_of(op)) {
        deps.push_back(lanes[static_cast<size_t>(dep.lane)][static_cast<size_t>(dep.position)]);
      }
      lane.push_back(i);
      append_message(stream, node(rank, i, op, std::move(deps)));
    }
    return stream;
  }

 private:
  WireWriter node(int rank, int64_t index, const Op& op, std::vector<int64_t> deps) const {
    WireWriter node;
    node.integer(kNodeId, index);
    node.text(kNodeName, fmt::format("{} step {}", name(op.kind), op.step));
    node.varint(kNodeType, type_of(op.kind));
    std::sort(deps.begin(), deps.end());
    deps.erase(std::unique(deps.begin(), deps.end()), deps.end());
    std::string packed;
    for (const int64_t dep : deps) WireWriter::append_varint(packed, static_cast<uint64_t>(dep));
    if (!packed.empty()) node.text(kNodeDataDeps, packed);
    add_attribute(node, "is_cpu_op", kAttributeBool, 0);
    add_attribute(node, "lane", kAttributeInt32, op.lane);
    if (op.kind == OpKind::kSend || op.kind == OpKind::kReceive) {
      describe_transfer(rank, op, node);
    } else {
      describe_work({rank, index}, op, node);
    }
    return node;
  }

  static NodeType type_of(OpKind kind) {
    switch (kind) {
      case OpKind::kSend:
        return kSendNode;
      case OpKind::kReceive:
        return kReceiveNode;
      case OpKind::kAttend:
      case OpKind::kMerge:
      case OpKind::kCopy:
      case OpKind::kFinalize:
      case OpKind::kCompute:
      case OpKind::kBackward:
      case OpKind::kDelta:
      case OpKind::kAdd:
        return kComputeNode;
    }
    return kInvalidNode;
  }

  void describe_transfer(int rank, const Op& op, WireWriter& node) const {
    const bool is_send = op.kind == OpKind::kSend;
    const int from = is_send ? rank : op.peer;
    const int to = is_send ? op.peer : rank;
    add_attribute(node, "comm_size", kAttributeInt64, op.bytes);
    add_attribute(node, "comm_src", kAttributeInt32, from);
    add_attribute(node, "comm_dst", kAttributeInt32, to);
    add_attribute(node, "comm_tag", kAttributeInt32, tags_.tag(from, to, op.message));
    if (is_send) add_text_attribute(node, "protocol", name(op.protocol));
  }

  void describe_work(OpId id, const Op& op, WireWriter& node) const {
    const Picoseconds time_ps = op_time_(id, op);
    node.integer(kNodeDurationMicros, (time_ps + chakra::kMicrosecond / 2) / chakra::kMicrosecond);
    add_attribute(node, "num_ops", kAttributeInt64, op.flops);
    add_attribute(node, "duration_ps", kAttributeInt64, time_ps);
  }

  const RingProgram& program_;
  OpTime op_time_;
  Tags tags_;
};

std::vector<std::string> write_all(const std::string& prefix, const TraceWriter& writer) {
  std::vector<std::string> paths;
  for (int rank = 0; rank < writer.ranks(); ++rank) {
    paths.push_back(fmt::format("{}.{}.et", prefix, rank));
    write_file(paths.back(), writer.trace(rank));
  }
  return paths;
}

}  // namespace

std::vector<std::string> chakra_traces(const RingProgram& program, const Machine& machine) {
  return TraceWriter(program, times_on(program, machine)).traces();
}

std::vector<std::string> chakra_traces(const RingProgram& program, const Timeline& timeline) {
  return TraceWriter(program, times_in(program, timeline)).traces();
}

std::vector<std::string> write_chakra(const std::string& prefix, const RingProgram& program,
                                      const Machine& machine) {
  return write_all(prefix, TraceWriter(program, times_on(program, machine)));
}

std::vector<std::string> write_chakra(const std::string& prefix, const RingProgram& program,
                                      const Timeline& timeline) {
  return write_all(prefix, TraceWriter(program, times_in(program, timeline)));
}

}  // namespace ring
