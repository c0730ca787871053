#include "experiments/validation/closed_forms.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/cost_model.h"
#include "core/error.h"
#include "core/partition.h"

namespace ring {
namespace {

constexpr double kShortLaunch = 3e-6;

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

/// GPUs that exchange over one NIC at once; 1 where groups stay in a node.
double gpus_per_nic(const Machine& machine, const RowCase& row) {
  if (!row.is_ulysses_across_nodes) return 1;
  int gpus = 0, nics = 0;
  const std::vector<Node>& nodes = machine.topology.nodes();
  for (const Node& node : nodes) {
    gpus += node.kind == NodeKind::kGpu;
    nics += node.kind == NodeKind::kNic;
  }
  return nics > 0 ? std::max(1.0, static_cast<double>(gpus) / nics) : 1;
}

double memory_seconds(const Machine& machine, double bytes) {
  return bytes / machine.merge_bytes_per_s;
}

/// Elements of Q (or of the output) and of K (or V) that one GPU holds.
double query_elements(const RowCase& row) {
  const Problem& p = row.problem;
  return real(p.batch * p.heads * p.head_dim) * real(p.seq_len()) / real(row.gpus);
}
double key_elements(const RowCase& row) {
  const Problem& p = row.problem;
  const int64_t heads = std::max<int64_t>(p.kv_heads, row.ulysses);  // Replicated to one a rank.
  return real(p.batch * heads * p.head_dim) * real(p.seq_len()) / real(row.gpus);
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

double gradient_sum_seconds(const Problem& problem, const Op& op, const Stack& stack,
                            const Machine& machine) {
  const double rows = real(problem.batch * problem.heads * op.active_rows * problem.head_dim);
  const double keys = real(problem.batch * problem.kv_heads * (op.kv_end - op.kv_begin)) *
                      real(problem.head_dim + problem.head_dim_v);
  return memory_seconds(machine,
                        rows * stack.query_gradient_bytes + keys * stack.key_gradient_bytes) +
         2 * kShortLaunch;
}

}  // namespace

double all_to_all_seconds(const RowCase& row, const Stack& stack, const Machine& machine) {
  const auto u = static_cast<double>(row.ulysses);
  const int gpus_per_ring_rank = row.is_ulysses_across_nodes ? row.gpus / row.ulysses : 1;
  // The farthest member of the group sets the pace; on a switch all are alike.
  const ByteCost link = hop(machine, 0, (row.ulysses - 1) * gpus_per_ring_rank);
  const double elements = 2 * query_elements(row) + 2 * key_elements(row);
  const double element_bytes = real(size_bytes(row.problem.dtype));
  const double wire_s =
      elements * element_bytes * (u - 1) / u / (link.bytes_per_s / gpus_per_nic(machine, row));
  const int calls = row.all_to_all_calls + 1;
  const double layout_s = memory_seconds(machine, elements * stack.layout_bytes) +
                          2 * (row.all_to_all_calls + 1) * kShortLaunch;
  return wire_s + calls * link.start_s + layout_s;
}

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

RingProgram backward_program(const RingProgram& forward, const RowCase& row, const Stack& stack,
                             const Machine& machine) {
  const Problem& problem = forward.problem;
  TileKernel kernel;
  backward_kernel(machine, row, kernel);
  const double carried = 1 + real(stack.gradient_element_bytes) / real(size_bytes(problem.dtype));
  const ByteCost link = row.ring > 1 ? hop(machine, 0, 1) : ByteCost{0, 1};
  const double shard_bytes = carried * real(problem.kv_bytes(problem.seq_len())) / row.ring;
  // While a message is under way the kernel gets 1 / slowdown of the GPU.
  const double lost_s =
      row.ring > 1 ? (1 - 1 / machine.attend_slowdown_by_transfer) * shard_bytes / link.bytes_per_s
                   : 0;
  RingProgram program = forward;
  for (RankProgram& rank : program.rank_programs) {
    for (Op& op : rank.ops) {
      if (op.kind == OpKind::kSend || op.kind == OpKind::kReceive) {
        op.bytes = static_cast<Bytes>(carried * real(op.bytes));
      } else if (op.kind == OpKind::kAttend) {
        const double step_s = backward_tile_seconds(kernel, tile_work(problem, op)) +
                              gradient_sum_seconds(problem, op, stack, machine) + lost_s;
        op.kind = OpKind::kCompute;
        op.fixed_ps = picoseconds_from_seconds(step_s);
      }
    }
  }
  return program;
}

double last_gradient_hop_seconds(const RingProgram& forward, const RowCase& row, const Stack& stack,
                                 const Machine& machine) {
  if (row.ring == 1) return 0;
  const Problem& problem = forward.problem;
  const double elements =
      real(problem.kv_bytes(problem.seq_len())) / real(size_bytes(problem.dtype)) / row.ring;
  const ByteCost link = hop(machine, row.ring - 1, 0);
  return link.start_s + elements * real(stack.gradient_element_bytes) / link.bytes_per_s;
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
  const double attend_s = op_seconds(machine, &problem, op) -
                          (row.query_rows == 1 ? std::max(0.0, call_s - 2 * kShortLaunch) : 0);
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
  const double exchange_s =
      nodes > 1 ? 2 * link.start_s + output_bytes / link.bytes_per_s + kMergeLaunches * kShortLaunch
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
