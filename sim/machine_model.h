// MachineModel: the resources, paths and op costs of one simulation, from Machine and Disturbances.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/machine.h"
#include "core/ring_program.h"
#include "sim/fluid.h"
#include "sim/folding.h"
#include "sim/noise.h"
#include "sim/simulator.h"

namespace ring {

/// How messages from one rank to another travel.
struct Path {
  std::vector<int> links;      ///< Of the topology, in order.
  std::vector<int> resources;  ///< Of the fluid, without repetition.
  double cap = 0;              ///< Work per picosecond of one flow.
  double narrowest = 0;        ///< What a flow that is alone gets.
  Picoseconds latency_ps = 0;
};

/// Work of computation and copies is picoseconds alone, work of flows over links is bytes.
class MachineModel {
 public:
  /// Throws Error(kUsage) for disturbances of ranks or links that do not exist or with a factor
  /// that is not positive. `machine`, `problem` and `fold` (may be null) must outlive the model.
  MachineModel(const Machine& machine, const Problem* problem, int ranks,
               const SimulationOptions& options, const Fold* fold, Fluid& fluid);

  /// Resource that all ops of the rank's processor share, capacity 1.
  int core_of(int rank);
  /// Resource that all copies on the host of the rank share; -1: not a limit.
  int memory_of(int rank);
  int processor(int rank) const;
  /// Ranks on the processor of the rank, itself included.
  int sharers_of(int rank) const;
  int host_of(int rank) const;
  /// How many processors of the machine are on this host.
  int processors_of_host(int host) const;

  /// Throws Error(kUsage) when there is none, Error(kRunFailed) when a broken link is the cause.
  Path path(int source, int destination);

  /// Work of op `index` of `rank`: picoseconds of a computation, noise included.
  double compute_work_ps(int rank, int64_t index, const Op& op) const {
    const double factor = slowness_[static_cast<size_t>(rank)] * noise_of(rank, index);
    return factor *
           (op.kind == OpKind::kCompute ? static_cast<double>(op.fixed_ps) : alone_ps(rank, op));
  }
  /// Work of copying the bytes of a send or receive on a processor.
  double copy_work_ps(int rank, int64_t index, Bytes bytes) const;
  /// Bytes of a send, times noise.
  double link_work(int rank, int64_t index, Bytes bytes) const {
    return static_cast<double>(bytes) * noise_of(rank, index);
  }
  Picoseconds wakeup_ps() const { return wakeup_ps_; }
  Picoseconds start_ps(int rank) const { return start_ps_[static_cast<size_t>(rank)]; }

  const std::vector<std::string>& notes() const { return notes_; }
  const Topology& topology() const { return disturbed_ ? *disturbed_ : machine_.topology; }

 private:
  double noise_of(int rank, int64_t index) const {
    return noise_.is_on() ? noise_.of_op(rank, index) : 1;
  }
  double alone_ps(int rank, const Op& op) const;
  void apply(const Disturbances& disturbances, int ranks);
  std::vector<int> links_between(int from, int to) const;
  int carrier_resource(CarrierId carrier);
  double duplex_capacity(int group) const;
  Route route(int source, int destination);
  Path local_path() const;

  const Machine& machine_;
  const Problem* problem_;
  const Fold* fold_;
  Fluid& fluid_;
  NoiseFactors noise_;
  Picoseconds wakeup_ps_ = 0;
  std::vector<Picoseconds> start_ps_;
  std::vector<double> slowness_;         ///< Of each rank.
  std::unique_ptr<Topology> disturbed_;  ///< Instead of the machine's, if links are affected.
  bool has_broken_links_ = false;
  std::vector<int> core_resources_, memory_resources_;  ///< By node, by host; -1: none yet.
  std::vector<int> link_resources_, duplex_resources_, backplane_resources_;
  std::vector<std::string> notes_;
};

}  // namespace ring
