#include "experiments/validation/row_predict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/cost_model.h"
#include "core/error.h"
#include "core/fit.h"
#include "core/formats/file_io.h"
#include "core/formats/machine_json.h"
#include "core/library.h"
#include "core/paths.h"
#include "experiments/validation/closed_forms.h"
#include "experiments/validation/row_program.h"
#include "experiments/validation/stacks.h"
#include "sim/analytic.h"
#include "sim/simulator.h"

namespace ring {
namespace {

void set_nic_rate(Machine& machine, double bytes_per_s) {
  for (Link& link : machine.topology.mutable_links()) {
    if (link.link_class == "nic") link.bytes_per_s = bytes_per_s;
  }
}

Machine machine_for(const RowCase& row, MachineShelf& shelf) {
  Machine machine = shelf.get(row.machine);
  if (!row.kernels.empty() && machine.kernels.contains(row.kernels)) {
    select_kernels(machine, row.kernels);
  }
  if (row.nic_bytes_per_s > 0) set_nic_rate(machine, row.nic_bytes_per_s);
  apply_stack(find_stack(row.stack), row.ring, machine);
  return machine;
}

double simulated_seconds(const RingProgram& program, const Machine& machine) {
  SimulationOptions options;
  options.keep_timeline = false;
  return seconds_from_picoseconds(simulate(program, machine, options).makespan_ps);
}

double passes_seconds(const RowCase& row, double forward_s, double backward_s) {
  switch (row.pass) {
    case TimedPass::kForward:
      return forward_s;
    case TimedPass::kBackward:
      return backward_s;
    case TimedPass::kBoth:
      return forward_s + backward_s;
  }
  return forward_s;
}

Pass pass_of(TimedPass pass) {
  switch (pass) {
    case TimedPass::kForward:
      return Pass::kForward;
    case TimedPass::kBackward:
      return Pass::kBackward;
    case TimedPass::kBoth:
      return Pass::kForwardBackward;
  }
  return Pass::kForward;
}

/// The ring between the GPUs of `row` that do not share heads.
double ring_seconds(const RowCase& row, const Stack& stack, Pass pass, Machine machine) {
  place_ring(row, machine);
  return simulated_seconds(ring_program(row, stack, pass), machine);
}

/// What the all-to-alls of one pass add to its ring: the program with them, without its ring. The
/// backward pass moves as much as the forward pass (dO in, dQ, dK and dV out).
double exchange_seconds(const RowCase& row, const Stack& stack, const Machine& machine) {
  RingProgram all = exchange_program(row), ring = ring_program(row, stack, Pass::kForward);
  keep_exchange_only(row.ulysses, all);
  keep_exchange_only(1, ring);
  Machine machine_of_all = machine, machine_of_ring = machine;
  place_groups(row, machine_of_all);
  place_ring(row, machine_of_ring);
  // What is left of the ring, the latency of its messages, is in both.
  return simulated_seconds(all, machine_of_all) - simulated_seconds(ring, machine_of_ring) +
         layout_seconds(row, stack, machine);
}

std::string predict_ring(const RowCase& row, MachineShelf& shelf, double& seconds) {
  const Machine machine = machine_for(row, shelf);
  const Stack& stack = find_stack(row.stack);
  seconds = ring_seconds(row, stack, pass_of(row.pass), machine);
  if (row.ulysses == 1) return row.ring == 1 ? "kernel" : "simulated program";
  const double exchange_s = exchange_seconds(row, stack, machine);
  seconds += passes_seconds(row, exchange_s, exchange_s);
  return row.ring == 1 ? "kernel + simulated all-to-alls" : "simulated ring and all-to-alls";
}

std::string predict_gathered(const RowCase& row, MachineShelf& shelf, double& seconds) {
  const Machine machine = machine_for(row, shelf);
  const Stack& stack = find_stack(row.stack);
  const double forward_s = row.pass == TimedPass::kBackward
                               ? 0
                               : gathered_seconds(row, machine, /*is_backward=*/false, stack);
  const double backward_s = row.pass == TimedPass::kForward
                                ? 0
                                : gathered_seconds(row, machine, /*is_backward=*/true, stack);
  seconds = passes_seconds(row, forward_s, backward_s);
  return row.layout == Layout::kKernel ? "kernel" : "closed form: gather, then one kernel";
}

double overlap_tokens(const RowCase& row) {
  // c tokens of a block: 4 d c^2 flops hide 4 d c bytes of K and V in 16 bits; d cancels.
  constexpr double kDim = 128;
  constexpr int64_t kMany = 1'000'000;  // In thousandths of a token, for a figure in tokens.
  const double pair_s = 4 * kDim / row.flops;
  return row.blocks *
         static_cast<double>(hiding_tokens(pair_s / kMany, 0, 4 * 128, row.bytes_per_s)) / kMany;
}

/// Spread of one prediction: run to run, from site to site, the kernel fit, and what was assumed.
double spread_of(const RowCase& row, MachineShelf& shelf) {
  constexpr double kSite = 0.08, kAssumption = 0.06;
  const double kernel = shelf.kernel_error(row.machine);
  const double run = shelf.get(row.machine).noise.per_run;
  const double assumed = kAssumption * static_cast<double>(row.assumptions.size());
  return std::sqrt(run * run + kSite * kSite + kernel * kernel + assumed * assumed);
}

}  // namespace

const MachineShelf::Entry& MachineShelf::entry(const std::string& name) {
  const auto known = entries_.find(name);
  if (known != entries_.end()) return known->second;
  std::string path = folder_.empty() ? std::string() : folder_ + "/" + name + ".json";
  if (!file_exists(path)) path = find_in_library(LibraryKind::kMachines, name);
  if (path.empty()) {
    throw_usage(fmt::format("the machine '{}' is not in the library", name),
                "ringscope machines build --output FOLDER makes them");
  }
  MachineFile file = read_machine(path);
  std::vector<double> errors;
  for (const auto& [probe, fit] : file.calibration.fits) {
    errors.push_back(fit.held_out_samples > 0 ? fit.held_out_median : fit.fitted_median);
  }
  return entries_.emplace(name, Entry{std::move(file.machine), median(errors)}).first->second;
}

const Machine& MachineShelf::get(const std::string& name) { return entry(name).machine; }
double MachineShelf::kernel_error(const std::string& name) { return entry(name).kernel_error; }

RowPrediction predict_row(const RowCase& row, MachineShelf& shelf) {
  RowPrediction prediction;
  if (row.layout == Layout::kOverlap) {
    prediction.seconds = prediction.low_s = prediction.high_s = overlap_tokens(row);
    prediction.method = "closed form: overlap condition";
    return prediction;
  }
  switch (row.layout) {
    case Layout::kRing:
    case Layout::kDoubleRing:
      prediction.method = predict_ring(row, shelf, prediction.seconds);
      break;
    case Layout::kKernel:
    case Layout::kAllGather:
      prediction.method = predict_gathered(row, shelf, prediction.seconds);
      break;
    case Layout::kDecode:
      prediction.seconds = piece_seconds(row, machine_for(row, shelf));
      prediction.method = "closed form: pieces of pass-Q";
      break;
    case Layout::kOverlap:
      break;
  }
  constexpr double kNinety = 1.645;  // Standard deviations on each side.
  const double factor = std::exp(kNinety * spread_of(row, shelf));
  prediction.low_s = prediction.seconds / factor;
  prediction.high_s = prediction.seconds * factor;
  return prediction;
}

double in_unit_of(const RowCase& row, double seconds) {
  switch (row.quantity) {
    case Quantity::kSeconds:
    case Quantity::kTokens:
      return seconds / row.unit_scale;
    case Quantity::kPerSecond:
      return 1 / seconds;
    case Quantity::kFlopsPerGpu:
      return row.counted_flops / static_cast<double>(row.gpus) / seconds / row.unit_scale;
  }
  return seconds;
}

}  // namespace ring
