#include "sim/machine_changes.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace ring {
namespace {

Picoseconds scaled_time(Picoseconds time_ps, double factor) {
  return std::llround(static_cast<double>(time_ps) * factor);
}

bool has_kind(const RingProgram& program, OpKind kind) {
  return std::any_of(program.rank_programs.begin(), program.rank_programs.end(),
                     [&](const RankProgram& rank) {
                       return std::any_of(rank.ops.begin(), rank.ops.end(),
                                          [&](const Op& op) { return op.kind == kind; });
                     });
}

/// Classes of links on the routes that the program uses.
std::set<std::string> classes_used(const Machine& machine, const RingProgram& program) {
  std::set<std::pair<int, int>> ends;
  for (int rank = 0; rank < program.ranks(); ++rank) {
    for (const Op& op : program.rank_programs[static_cast<size_t>(rank)].ops) {
      if (op.kind != OpKind::kSend) continue;
      ends.insert({processor_of(machine, rank), processor_of(machine, op.peer)});
    }
  }
  std::set<std::string> classes;
  for (const auto& [from, to] : ends) {
    if (!machine.topology.has_route(from, to)) continue;
    for (const int link : machine.topology.route(from, to).links) {
      classes.insert(machine.topology.links()[static_cast<size_t>(link)].link_class);
    }
  }
  return classes;
}

void add_transfer_parameters(const Machine& machine, const RingProgram& program,
                             std::vector<MachineParameter>& list) {
  if (!has_kind(program, OpKind::kSend)) return;
  if (machine.transfer == TransferKind::kReceiverCopy) {
    list.push_back({"copy rate", false, [](Machine& m, double f) { m.copy.bytes_per_s *= f; }});
    list.push_back({"copy start", true, [](Machine& m, double f) { m.copy.start_s *= f; }});
    if (machine.memory_bytes_per_s > 0) {
      list.push_back(
          {"memory bandwidth", false, [](Machine& m, double f) { m.memory_bytes_per_s *= f; }});
    }
    return;
  }
  const std::set<std::string> classes = classes_used(machine, program);
  for (const std::string& link_class : classes) {
    list.push_back({link_class + " bandwidth", false,
                    [link_class](Machine& m, double f) { scale_bandwidth(m, link_class, f); }});
  }
  if (classes.size() > 1) {
    list.push_back(
        {"link bandwidth", false, [](Machine& m, double f) { scale_bandwidth(m, {}, f); }});
  }
  list.push_back({"link latency", true, scale_latency});
}

void scale_attend(Machine& machine, double factor) {
  for (auto* const costs : {&machine.attend, &machine.backward}) {
    for (auto& [dtype, cost] : *costs) {
      cost.per_pair_s *= factor;
      cost.per_pair_dim_s *= factor;
      cost.per_edge_row_dim_s *= factor;
      cost.per_row_dim_s *= factor;
      cost.per_far_row_dim_s *= factor;
      cost.per_start_row_dim_s *= factor;
      cost.per_key_dim_s *= factor;
      cost.per_merge_row_dim_s *= factor;
      scale_time(cost.tiles, factor);
    }
  }
}

void scale_launch(Machine& machine, double factor) {
  for (auto* const costs : {&machine.attend, &machine.backward}) {
    for (auto& [dtype, cost] : *costs) {
      cost.launch_s *= factor;
      cost.merge_launch_s *= factor;
      for (TileKernel& kernel : cost.tiles) kernel.launch_s *= factor;
    }
  }
}

}  // namespace

std::vector<MachineParameter> parameters_of(const Machine& machine, const RingProgram& program) {
  std::vector<MachineParameter> list;
  add_transfer_parameters(machine, program, list);
  if (has_kind(program, OpKind::kAttend) || has_kind(program, OpKind::kBackward)) {
    list.push_back({"compute speed", false, [](Machine& m, double f) { scale_attend(m, 1 / f); }});
    list.push_back({"launch cost", true, scale_launch});
  }
  const bool finalizes = has_kind(program, OpKind::kFinalize);
  if (has_kind(program, OpKind::kMerge) || (finalizes && machine.finalize_bytes_per_s <= 0)) {
    list.push_back({"merge rate", false, [](Machine& m, double f) { m.merge_bytes_per_s *= f; }});
  }
  if (finalizes && machine.finalize_bytes_per_s > 0) {
    list.push_back(
        {"finalize rate", false, [](Machine& m, double f) { m.finalize_bytes_per_s *= f; }});
  }
  if (has_kind(program, OpKind::kAdd) && machine.add_bytes_per_s > 0) {
    list.push_back({"rate of adding", false, [](Machine& m, double f) { m.add_bytes_per_s *= f; }});
  }
  if (machine.wakeup_s > 0) {
    list.push_back({"wake-up time", true, [](Machine& m, double f) { m.wakeup_s *= f; }});
  }
  return list;
}

RingProgram with_compute_scaled(const RingProgram& program, double factor) {
  RingProgram scaled = program;
  for (RankProgram& rank : scaled.rank_programs) {
    for (Op& op : rank.ops) op.fixed_ps = scaled_time(op.fixed_ps, factor);
  }
  return scaled;
}

}  // namespace ring
