#include "experiments/validation/closed_forms.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/cost_model.h"
#include "core/error.h"
#include "core/partition.h"

namespace ring {
namespace {

double real(int64_t value) { return static_cast<double>(value); }

/// What one message takes between two GPUs that do not share the path with others.
ByteCost hop(const Machine& machine, int from, int to) {
  const Route route = machine.topology.route(machine.processors[static_cast<size_t>(from)],
                                             machine.processors[static_cast<size_t>(to)]);
  return {seconds_from_picoseconds(route.latency_ps), route.bytes_per_s};
}

/// What a GPU gets of a ring all-gather: its NVLink, or the NICs of a node if those are less.
ByteCost gather_hop(const Machine& machine, const RowCase& row) {
  const std::vector<Node>& nodes = machine.topology.nodes();
  const auto host = [&](int gpu) {
    return nodes[static_cast<size_t>(machine.processors[static_cast<size_t>(gpu)])].host;
  };
  ByteCost near = hop(machine, 0, 1);
  const ByteCost far = hop(machine, row.gpus - 1, 0);
  if (host(row.gpus - 1) == host(0)) return near;
  int rails = 0;
  for (const Node& node : nodes) rails += node.kind == NodeKind::kNic && node.host == host(0);
  near.bytes_per_s = std::min(near.bytes_per_s, rails * far.bytes_per_s);
  near.start_s = far.start_s;
  return near;
}

double memory_seconds(const Machine& machine, double bytes) {
  return bytes / machine.merge_bytes_per_s;
}

const TileKernel& backward_kernel(const Machine& machine, const RowCase& row, TileKernel& kernel) {
  const std::string family = row.kernels.empty() || !machine.kernels.contains(row.kernels)
                                 ? machine.context.at("kernels")
                                 : row.kernels;
  const KernelFamily& known = machine.kernels.at(family);
  if (known.backward.empty()) {
    throw_usage(
        fmt::format("machine '{}' does not know the backward pass of {}", machine.name, family));
  }
  kernel = kernel_for(known.backward, (row.problem.head_dim + row.problem.head_dim_v) / 2);
  return kernel;
}

/// One op over the keys of all ranks by the rows of the rank that holds most of the work.
Op whole_op(const RowCase& row) {
  const Problem& problem = row.problem;
  const int ranks = row.layout == Layout::kKernel ? 1 : row.ring;
  const Partition partition = Partition::parse(row.partition, problem.seq_len(), ranks);
  const TokenRanges all{{0, problem.seq_len(), 1}};
  Op heaviest;
  for (int rank = 0; rank < ranks; ++rank) {
    const BlockCounts counts = problem.mask.count_block(partition.shard(rank), all);
    if (counts.visible_pairs <= heaviest.visible_pairs) continue;
    heaviest.kind = OpKind::kAttend;
    heaviest.starts_state = true;
    heaviest.q_end = partition.shard_tokens(rank);
    heaviest.kv_end = problem.seq_len();
    heaviest.head_end = static_cast<int32_t>(problem.heads);
    heaviest.visible_pairs = counts.visible_pairs;
    heaviest.active_rows = counts.active_rows;
    heaviest.edge_rows = counts.edge_rows;
  }
  return heaviest;
}

}  // namespace

double gathered_seconds(const RowCase& row, const Machine& machine, bool is_backward,
                        const Stack& stack) {
  const Problem& problem = row.problem;
  const Op op = whole_op(row);
  double seconds = 0;
  if (is_backward) {
    TileKernel kernel;
    seconds = backward_tile_seconds(backward_kernel(machine, row, kernel), tile_work(problem, op));
  } else {
    seconds = op_seconds(machine, &problem, op);
  }
  if (row.layout == Layout::kKernel || row.ring == 1) return seconds;
  const ByteCost link = gather_hop(machine, row);
  const double shard_bytes = real(problem.kv_bytes(problem.seq_len())) / row.ring;
  double bytes = (row.ring - 1) * shard_bytes;
  // What was gathered is put into the order of the sequence: read and written once.
  seconds += memory_seconds(machine, 2 * row.ring * shard_bytes);
  if (is_backward) {
    const double gradients = real(stack.gradient_element_bytes) / real(size_bytes(problem.dtype));
    seconds += memory_seconds(machine, 2 * row.ring * shard_bytes * gradients);
    bytes += (row.ring - 1) * shard_bytes * real(stack.gradient_element_bytes) /
             real(size_bytes(problem.dtype));
  }
  return seconds + link.start_s + bytes / link.bytes_per_s;
}

double piece_seconds(const RowCase& row, const Machine& machine) {
  const Problem& problem = row.problem;
  const int nodes = row.ring;
  Op op;
  op.kind = OpKind::kAttend;
  op.starts_state = true;
  op.q_end = op.active_rows = row.query_rows;
  op.kv_end = row.context_tokens;
  op.head_end = static_cast<int32_t>(problem.heads);
  op.visible_pairs = row.query_rows * row.context_tokens;
  // Decoding replays CUDA graphs: short launches of the kernel over split keys and of the one that
  // combines them, instead of a call's.
  const AttendCost& cost = machine.attend.at(problem.dtype);
  const double call_s = kernel_for(cost.tiles, problem.head_dim).launch_s;
  const double attend_s =
      op_seconds(machine, &problem, op) -
      (row.query_rows == 1 ? std::max(0.0, call_s - 2 * kShortLaunchSeconds) : 0);
  const int gpus_per_node = row.gpus / nodes;
  const ByteCost link = nodes > 1 ? hop(machine, 0, gpus_per_node) : ByteCost{0, 1};
  const double row_elements = real(problem.batch * problem.heads * row.query_rows);
  const double query_bytes = row_elements * real(problem.head_dim) * 2;
  const double key_bytes =
      real(problem.batch * problem.kv_heads * row.context_tokens * 2 * problem.head_dim) * 2;
  const double hop_s = link.start_s + (row.is_pass_q ? query_bytes : key_bytes) / link.bytes_per_s;
  // Outputs in 16 bits and lse in fp32 go home in a call each.
  const double output_bytes = row_elements * (real(problem.head_dim_v) * 2 + 4) * (nodes - 1);
  constexpr int kMergeLaunches = 3;
  const double exchange_s = nodes > 1 ? 2 * link.start_s + output_bytes / link.bytes_per_s +
                                            kMergeLaunches * kShortLaunchSeconds
                                      : 0;
  using Piece = RowCase::Piece;
  // While decoding hops come one by one, a row of the table has the sum of them.
  const double hops_s = (row.query_rows == 1 ? nodes - 1 : 1) * hop_s;
  switch (row.piece) {
    case Piece::kAttend:
      return attend_s;
    case Piece::kRingLoop:
      return nodes * attend_s;
    case Piece::kSendReceive:
      return hops_s;
    case Piece::kAllToAll:
      return exchange_s;
    case Piece::kWhole:
      return nodes * attend_s + hops_s + exchange_s;
  }
  return 0;
}

}  // namespace ring
