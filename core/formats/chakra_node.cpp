#include "core/formats/chakra_node.h"

#include <fmt/format.h>

#include <functional>
#include <queue>
#include <unordered_map>

#include "core/error.h"
#include "core/formats/chakra_schema.h"
#include "core/formats/protobuf_wire.h"

namespace ring {
namespace {

using namespace chakra;

void decode_attribute(std::string_view bytes, const std::string& what, int64_t offset,
                      ChakraNode& node) {
  WireReader reader(bytes, what, offset);
  std::string_view name, text;
  std::optional<int64_t> number;
  while (!reader.at_end()) {
    const WireField field = reader.next();
    if (field.field == kAttributeName) name = field.bytes;
    if (field.field == kAttributeString) text = field.bytes;
    if (field.field == kAttributeInt32 || field.field == kAttributeInt64 ||
        field.field == kAttributeUint32 || field.field == kAttributeUint64) {
      number = static_cast<int64_t>(field.number);
    }
  }
  if (name == "duration_ps") node.duration_ps = number;
  if (name == "num_ops") node.num_ops = number;
  if (name == "comm_size") node.comm_size = number;
  if (name == "comm_src") node.comm_src = number;
  if (name == "comm_dst") node.comm_dst = number;
  if (name == "comm_tag") node.comm_tag = number;
  if (name == "lane") node.lane = number;
  if (name == "protocol") node.protocol = text;
}

/// Repeated numbers come packed or one by one.
void decode_deps(const WireField& field, const std::string& what, int64_t offset,
                 ChakraNode& node) {
  if (field.type == WireField::Type::kNumber) {
    node.deps.push_back(static_cast<int64_t>(field.number));
    return;
  }
  WireReader list(field.bytes, what, offset);
  while (!list.at_end()) node.deps.push_back(static_cast<int64_t>(list.varint()));
}

ChakraNode decode_node(std::string_view bytes, const std::string& what, int64_t offset) {
  ChakraNode node;
  WireReader reader(bytes, what, offset);
  while (!reader.at_end()) {
    const WireField field = reader.next();
    const int64_t at = reader.position() - static_cast<int64_t>(field.bytes.size());
    switch (field.field) {
      case kNodeId:
        node.id = static_cast<int64_t>(field.number);
        break;
      case kNodeName:
        node.name = field.bytes;
        break;
      case kNodeType:
        node.type = field.number;
        break;
      case kNodeControlDeps:
      case kNodeDataDeps:
        decode_deps(field, what, at, node);
        break;
      case kNodeDurationMicros:
        node.duration_micros = static_cast<int64_t>(field.number);
        break;
      case kNodeAttribute:
        decode_attribute(field.bytes, what, at, node);
        break;
      default:
        break;
    }
  }
  return node;
}

}  // namespace

std::vector<ChakraNode> decode_chakra(std::string_view trace, const std::string& what) {
  WireReader stream(trace, what);
  if (stream.at_end()) throw_usage(fmt::format("{}: the trace is empty", what));
  stream.delimited();  // the metadata
  std::vector<ChakraNode> nodes;
  while (!stream.at_end()) {
    const std::string_view bytes = stream.delimited();
    nodes.push_back(
        decode_node(bytes, what, stream.position() - static_cast<int64_t>(bytes.size())));
  }
  return nodes;
}

std::vector<size_t> order_chakra(const std::vector<ChakraNode>& nodes, const std::string& what) {
  std::unordered_map<int64_t, size_t> place;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (place.emplace(nodes[i].id, i).second) continue;
    throw_usage(fmt::format("{}: node {} comes twice", what, nodes[i].id));
  }
  std::vector<std::vector<size_t>> followers(nodes.size());
  std::vector<size_t> open(nodes.size(), 0);
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (const int64_t dep : nodes[i].deps) {
      const auto at = place.find(dep);
      if (at == place.end()) {
        throw_usage(fmt::format("{}: node {} ('{}') depends on node {}, which is not in the trace",
                                what, nodes[i].id, nodes[i].name, dep));
      }
      followers[at->second].push_back(i);
      ++open[i];
    }
  }
  using Entry = std::pair<int64_t, size_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (open[i] == 0) ready.push({nodes[i].id, i});
  }
  std::vector<size_t> order;
  while (!ready.empty()) {
    order.push_back(ready.top().second);
    ready.pop();
    for (const size_t next : followers[order.back()]) {
      if (--open[next] == 0) ready.push({nodes[next].id, next});
    }
  }
  for (size_t i = 0; i < nodes.size() && order.size() < nodes.size(); ++i) {
    if (open[i] > 0) {
      throw_usage(fmt::format("{}: node {} ('{}') waits for itself through a cycle", what,
                              nodes[i].id, nodes[i].name));
    }
  }
  return order;
}

}  // namespace ring
