#include "core/cost_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/error.h"

namespace ring {

namespace {

constexpr Bytes kStateElementBytes = 4;

int64_t state_rows(const Problem& problem, const Op& op) {
  return problem.batch * (op.head_end - op.head_begin) * (op.q_end - op.q_begin);
}

const Problem& require_problem(const Problem* problem, const Op& op) {
  if (problem == nullptr) {
    throw_usage(
        fmt::format("a program without an attention problem has an op of kind {}", name(op.kind)),
        "give such programs compute ops with a time");
  }
  return *problem;
}

double rate_or(double bytes_per_s, double otherwise) {
  return bytes_per_s > 0 ? bytes_per_s : otherwise;
}

double state_seconds(double bytes_per_s, Bytes bytes) {
  return byte_seconds({0, bytes_per_s}, bytes, "merge rate");
}

}  // namespace

int processor_of(const Machine& machine, int rank) {
  if (machine.processors.empty()) {
    throw_usage(fmt::format("machine '{}' has no processors to place ranks on", machine.name));
  }
  const auto count = machine.processors.size();
  return machine.processors[static_cast<size_t>(rank) % count];
}

void select_kernels(Machine& machine, const std::string& family) {
  const auto found = machine.kernels.find(family);
  if (found == machine.kernels.end()) {
    std::vector<std::string> names;
    for (const auto& [name, kernels] : machine.kernels) names.push_back(name);
    throw_usage(fmt::format("machine '{}' knows no kernels '{}'", machine.name, family),
                fmt::format("it knows: {}", fmt::join(names, ", ")));
  }
  for (auto& [dtype, cost] : machine.attend) cost.tiles = found->second.forward;
  for (auto& [dtype, cost] : machine.backward) cost.tiles = found->second.backward;
}

namespace {

/// Share of the active rows, of `row_bytes` each, that have to come from beyond the cache.
double far_share(const AttendCost& cost, const Problem& problem, const Op& op, int sharers,
                 int64_t row_bytes) {
  if (cost.cache_bytes <= 0) return 0;
  const double bytes = static_cast<double>(sharers) * static_cast<double>(problem.batch) *
                       static_cast<double>(op.active_rows) *
                       static_cast<double>(op.head_end - op.head_begin) *
                       static_cast<double>(row_bytes);
  return bytes > cost.cache_bytes ? 1 - cost.cache_bytes / bytes : 0;
}

/// The passes of software that merges the outputs of steps itself.
double step_merge_seconds(const AttendCost& cost, const TileWork& work, const Op& op) {
  if (op.starts_state) return 0;
  return cost.merge_launch_s + cost.per_merge_row_dim_s * static_cast<double>(work.rows) *
                                   static_cast<double>(work.planes) * static_cast<double>(work.dim);
}

double tile_attend_seconds(const AttendCost& cost, const Problem& problem, const Op& op) {
  const TileWork work = tile_work(problem, op);
  // Kernels are measured with equal dims; unequal ones (MLA) count by their mean.
  const TileKernel kernel = kernel_for(cost.tiles, (problem.head_dim + problem.head_dim_v) / 2);
  return forward_tile_seconds(kernel, work) + step_merge_seconds(cost, work, op);
}

}  // namespace

double attend_seconds(const AttendCost& cost, const Problem& problem, const Op& op, int sharers) {
  if (!cost.tiles.empty()) return tile_attend_seconds(cost, problem, op);
  const double heads = static_cast<double>(op.head_end - op.head_begin);
  // Query heads share their KV head; a slice of the heads touches that share of the keys.
  const double kv_heads =
      static_cast<double>(problem.kv_heads) * heads / static_cast<double>(problem.heads);
  const double both_dims = static_cast<double>(problem.head_dim + problem.head_dim_v);
  const double pairs = static_cast<double>(op.visible_pairs) * heads;
  const double edge_rows = static_cast<double>(op.edge_rows) * heads;
  const double rows = static_cast<double>(op.active_rows) * heads;
  const double keys = static_cast<double>(op.kv_end - op.kv_begin) * kv_heads;
  const double row_dims = rows * static_cast<double>(problem.head_dim_v);
  // Q and the state.
  const int64_t row_bytes =
      problem.head_dim * size_bytes(problem.dtype) + (problem.head_dim_v + 2) * kStateElementBytes;
  const double started_rows = op.starts_state ? static_cast<double>(op.q_end - op.q_begin) : 0;
  const double per_batch_s =
      cost.per_pair_s * pairs + cost.per_pair_dim_s * pairs * both_dims +
      cost.per_edge_row_dim_s * edge_rows * both_dims + cost.per_row_dim_s * row_dims +
      cost.per_far_row_dim_s * row_dims * far_share(cost, problem, op, sharers, row_bytes) +
      cost.per_start_row_dim_s * started_rows * heads * static_cast<double>(problem.head_dim_v) +
      cost.per_key_dim_s * keys * both_dims;
  return cost.launch_s + per_batch_s * static_cast<double>(problem.batch);
}

namespace {

double units(int64_t count, int64_t unit) {
  return static_cast<double>(std::max<int64_t>((count + unit - 1) / unit, 1));
}

/// Gradient elements that a backward op resets, of one batch element.
double started_elements(const Problem& problem, const Op& op, double heads, double kv_heads) {
  if (!op.starts_state) return 0;
  const auto dim = static_cast<double>(problem.head_dim);
  if (op.payload == Payload::kQuerySide)
    return static_cast<double>(op.q_end - op.q_begin) * heads * dim;
  return static_cast<double>(op.kv_end - op.kv_begin) * kv_heads *
         (dim + static_cast<double>(problem.head_dim_v));
}

}  // namespace

double backward_seconds(const AttendCost& cost, const Problem& problem, const Op& op, int sharers) {
  if (!cost.tiles.empty()) {
    return backward_tile_seconds(
        kernel_for(cost.tiles, (problem.head_dim + problem.head_dim_v) / 2),
        tile_work(problem, op));
  }
  const double heads = static_cast<double>(op.head_end - op.head_begin);
  const double kv_heads =
      static_cast<double>(problem.kv_heads) * heads / static_cast<double>(problem.heads);
  const auto count = [](int64_t value) { return static_cast<double>(value); };
  const double pair_dims = count(3 * problem.head_dim + 2 * problem.head_dim_v);
  const double pairs = count(op.visible_pairs) * heads;
  // Rows that see no key are skipped; those of the heads of a KV head are stacked.
  const int64_t group = problem.heads / problem.kv_heads;
  const double row_dims = count(op.active_rows) * heads *
                          count(2 * problem.head_dim + problem.head_dim_v) *
                          units(op.kv_end - op.kv_begin, kBackwardUnitKeys);
  // Q and dO as stored, dQ in fp32.
  const int64_t row_bytes = (problem.head_dim + problem.head_dim_v) * size_bytes(problem.dtype) +
                            problem.head_dim * kStateElementBytes;
  const double key_dims = count(op.kv_end - op.kv_begin) * kv_heads *
                          count(problem.head_dim + problem.head_dim_v) *
                          units(op.active_rows * group, kBackwardUnitRows);
  const double per_batch_s =
      cost.per_pair_s * pairs + cost.per_pair_dim_s * pairs * pair_dims +
      cost.per_edge_row_dim_s * count(op.edge_rows) * heads * pair_dims +
      cost.per_row_dim_s * row_dims +
      cost.per_far_row_dim_s * row_dims * far_share(cost, problem, op, sharers, row_bytes) +
      cost.per_start_row_dim_s * started_elements(problem, op, heads, kv_heads) +
      cost.per_key_dim_s * key_dims;
  return cost.launch_s + per_batch_s * count(problem.batch);
}

TileWork tile_work(const Problem& problem, const Op& op) {
  TileWork work;
  work.rows = op.active_rows;
  work.edge_rows = op.edge_rows;
  work.keys = op.kv_end - op.kv_begin;
  work.visible_pairs = op.visible_pairs;
  work.planes = problem.batch * (op.head_end - op.head_begin);
  work.planes_per_key_plane = problem.heads / problem.kv_heads;
  work.dim = problem.head_dim_v;
  const auto both = static_cast<double>(problem.head_dim + problem.head_dim_v);
  const double query_side = static_cast<double>(work.rows * work.planes);
  const double key_side =
      static_cast<double>(work.keys * work.planes) / static_cast<double>(work.planes_per_key_plane);
  work.bytes = (query_side + key_side) * both * static_cast<double>(size_bytes(problem.dtype));
  return work;
}

Bytes merge_bytes(const Problem& problem, const Op& op) {
  return 3 * state_rows(problem, op) * (problem.head_dim_v + 2) * kStateElementBytes;
}

Bytes finalize_bytes(const Problem& problem, const Op& op) {
  if (op.payload == Payload::kPartial)
    return 2 * state_rows(problem, op) * (problem.head_dim_v + 2) * kStateElementBytes;
  const Bytes state = (problem.head_dim_v + 2) * kStateElementBytes;
  const Bytes output = problem.head_dim_v * size_bytes(problem.dtype) + kStateElementBytes;
  return state_rows(problem, op) * (state + output);
}

double byte_seconds(const ByteCost& cost, Bytes bytes, const char* what) {
  if (bytes == 0) return cost.start_s;
  if (!(cost.bytes_per_s > 0)) {
    throw_usage(fmt::format("the machine does not state its {}", what),
                "calibrate it, or add the value to its profile");
  }
  return cost.start_s + static_cast<double>(bytes) / cost.bytes_per_s;
}

namespace {

/// The dtypes whose costs are stated: "bf16, fp16".
std::string names_of(const std::map<DType, AttendCost>& costs) {
  std::vector<std::string_view> names;
  for (const auto& [dtype, cost] : costs) names.push_back(name(dtype));
  return names.empty() ? "no dtype" : fmt::format("{}", fmt::join(names, ", "));
}

/// Naive attention works on hidden pairs too, and each score is written and read three times.
double naive_seconds(const Machine& machine, const AttendCost& cost, const Problem& problem, Op op,
                     int sharers) {
  constexpr int64_t kPasses = 6;
  op.visible_pairs = (op.q_end - op.q_begin) * (op.kv_end - op.kv_begin);
  const Bytes score_bytes =
      kPasses * problem.batch * (op.head_end - op.head_begin) * op.visible_pairs * 4;
  return attend_seconds(cost, problem, op, sharers) +
         state_seconds(machine.merge_bytes_per_s, score_bytes);
}

}  // namespace

double op_seconds(const Machine& machine, const Problem* problem, const Op& op, int sharers) {
  switch (op.kind) {
    case OpKind::kAttend: {
      const Problem& known = require_problem(problem, op);
      const auto cost = machine.attend.find(known.dtype);
      if (cost == machine.attend.end()) {
        throw_usage(fmt::format("machine '{}' does not state what attention costs in {}",
                                machine.name, name(known.dtype)),
                    fmt::format("it states {}: choose with --dtype", names_of(machine.attend)));
      }
      if (op.method == AttendMethod::kNaive)
        return naive_seconds(machine, cost->second, known, op, sharers);
      return attend_seconds(cost->second, known, op, sharers);
    }
    case OpKind::kBackward: {
      const Problem& known = require_problem(problem, op);
      const auto cost = machine.backward.find(known.dtype);
      if (cost == machine.backward.end()) {
        throw_usage(fmt::format("machine '{}' does not state what the backward pass costs in {}",
                                machine.name, name(known.dtype)),
                    "calibrate it again: older profiles know the forward pass only");
      }
      return backward_seconds(cost->second, known, op, sharers);
    }
    case OpKind::kAdd:
      return state_seconds(rate_or(machine.add_bytes_per_s, machine.merge_bytes_per_s), op.bytes);
    case OpKind::kDelta:
      return state_seconds(rate_or(machine.delta_bytes_per_s, machine.merge_bytes_per_s), op.bytes);
    case OpKind::kMerge:
      return state_seconds(machine.merge_bytes_per_s,
                           merge_bytes(require_problem(problem, op), op));
    case OpKind::kFinalize:
      return state_seconds(rate_or(machine.finalize_bytes_per_s, machine.merge_bytes_per_s),
                           finalize_bytes(require_problem(problem, op), op));
    case OpKind::kCopy:
      return byte_seconds(machine.copy, op.bytes, "copy rate");
    case OpKind::kCompute:
      return seconds_from_picoseconds(op.fixed_ps);
    case OpKind::kSend:
    case OpKind::kReceive:
      return 0;
  }
  return 0;
}

}  // namespace ring
