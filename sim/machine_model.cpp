#include "sim/machine_model.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/cost_model.h"
#include "core/error.h"

namespace ring {

namespace {

constexpr double kPerPicosecond = 1e-12;

int& at(std::vector<int>& table, int index) {
  if (static_cast<size_t>(index) >= table.size()) table.resize(static_cast<size_t>(index) + 1, -1);
  return table[static_cast<size_t>(index)];
}

void require_rank(int rank, int ranks, const char* what) {
  if (rank < 0 || rank >= ranks) {
    throw_usage(fmt::format("{}: there is no rank {} among {}", what, rank, ranks));
  }
}

void require_factor(double factor, const char* what) {
  if (!(factor > 0)) throw_usage(fmt::format("{}: the factor must be positive", what));
}

}  // namespace

MachineModel::MachineModel(const Machine& machine, const Problem* problem, int ranks,
                           const SimulationOptions& options, const Fold* fold, Fluid& fluid)
    : machine_(machine),
      problem_(problem),
      fold_(fold),
      fluid_(fluid),
      wakeup_ps_(picoseconds_from_seconds(machine.wakeup_s)),
      start_ps_(static_cast<size_t>(ranks), 0),
      slowness_(static_cast<size_t>(ranks), 1) {
  if (options.noise_seed) noise_ = NoiseFactors(machine.noise, *options.noise_seed);
  const auto processors = std::ssize(machine.processors);
  if (machine.transfer == TransferKind::kLinks && processors > 0 && ranks > processors) {
    notes_.push_back(fmt::format("{} ranks share {} processors: rank {} runs where rank 0 does",
                                 ranks, processors, processors));
  }
  apply(options.disturbances, ranks);
}

void MachineModel::apply(const Disturbances& disturbances, int ranks) {
  for (const SlowRank& slow : disturbances.slow_ranks) {
    require_rank(slow.rank, ranks, "slow rank");
    require_factor(slow.factor, "slow rank");
    slowness_[static_cast<size_t>(slow.rank)] *= slow.factor;
  }
  for (const LateStart& late : disturbances.late_starts) {
    require_rank(late.rank, ranks, "late start");
    if (late.delay_ps < 0) throw_usage("late start: the delay must not be negative");
    start_ps_[static_cast<size_t>(late.rank)] += late.delay_ps;
  }
  if (disturbances.slow_links.empty() && disturbances.broken_links.empty()) return;
  disturbed_ = std::make_unique<Topology>(machine_.topology);
  for (const SlowLink& slow : disturbances.slow_links) {
    require_factor(slow.factor, "slow link");
    for (const int link : links_between(slow.from, slow.to)) {
      disturbed_->mutable_links()[static_cast<size_t>(link)].bytes_per_s /= slow.factor;
    }
  }
  for (const BrokenLink& broken : disturbances.broken_links) {
    has_broken_links_ = true;
    for (const int link : links_between(broken.from, broken.to)) {
      disturbed_->mutable_links()[static_cast<size_t>(link)].bytes_per_s = 0;
    }
  }
}

std::vector<int> MachineModel::links_between(int from, int to) const {
  std::vector<int> found;
  const std::vector<Link>& links = machine_.topology.links();
  for (size_t i = 0; i < links.size(); ++i) {
    if (links[i].from == from && links[i].to == to) found.push_back(static_cast<int>(i));
  }
  if (found.empty()) {
    throw_usage(fmt::format("there is no link from node {} to node {} to disturb", from, to));
  }
  return found;
}

int MachineModel::processor(int rank) const { return processor_of(machine_, rank); }

int MachineModel::host_of(int rank) const {
  return topology().nodes()[static_cast<size_t>(processor(rank))].host;
}

int MachineModel::processors_of_host(int host) const {
  const std::vector<Node>& nodes = topology().nodes();
  return static_cast<int>(
      std::count_if(machine_.processors.begin(), machine_.processors.end(),
                    [&](int node) { return nodes[static_cast<size_t>(node)].host == host; }));
}

int MachineModel::core_of(int rank) {
  int& resource = at(core_resources_, processor(rank));
  if (resource < 0) resource = fluid_.add_resource(1);
  return resource;
}

int MachineModel::memory_of(int rank) {
  if (machine_.memory_bytes_per_s <= 0 || machine_.copy.bytes_per_s <= 0) return -1;
  int& resource = at(memory_resources_, host_of(rank));
  // In units of copies at full speed.
  if (resource < 0) {
    resource = fluid_.add_resource(machine_.memory_bytes_per_s / machine_.copy.bytes_per_s);
  }
  return resource;
}

int MachineModel::carrier_resource(CarrierId carrier) {
  double share = 1;
  if (fold_ != nullptr) {
    const Orbit& orbit = fold_->orbits[static_cast<size_t>(fold_->orbit_of.at(carrier))];
    carrier = orbit.representative;
    share = orbit.share;
  }
  const auto number = static_cast<size_t>(carrier.number);
  double capacity = 0;
  std::vector<int>* table = nullptr;
  switch (carrier.kind) {
    case CarrierId::Kind::kLink:
      table = &link_resources_;
      capacity = topology().links()[number].bytes_per_s;
      break;
    case CarrierId::Kind::kDuplexGroup:
      table = &duplex_resources_;
      capacity = duplex_capacity(carrier.number);
      break;
    case CarrierId::Kind::kBackplane:
      table = &backplane_resources_;
      capacity = topology().nodes()[number].backplane_bytes_per_s;
      break;
  }
  int& resource = at(*table, carrier.number);
  if (resource < 0) resource = fluid_.add_resource(capacity * share * kPerPicosecond);
  return resource;
}

/// That of its first link which is up; all links of a group should agree.
double MachineModel::duplex_capacity(int group) const {
  for (const Link& link : topology().links()) {
    if (link.duplex_group == group && link.bytes_per_s > 0) return link.bytes_per_s;
  }
  RING_ASSERT(false);
  return 0;
}

Route MachineModel::route(int source, int destination) {
  const int from = processor(source), to = processor(destination);
  if (!has_broken_links_) return topology().route(from, to);
  const Route usual = machine_.topology.route(from, to);
  const std::vector<Link>& links = topology().links();
  const auto broken = std::find_if(usual.links.begin(), usual.links.end(), [&](int link) {
    return links[static_cast<size_t>(link)].bytes_per_s <= 0;
  });
  if (broken == usual.links.end()) return topology().route(from, to);
  const std::vector<Node>& nodes = topology().nodes();
  const Link& link = links[static_cast<size_t>(*broken)];
  const std::string what =
      fmt::format("the link from '{}' to '{}' is down", nodes[static_cast<size_t>(link.from)].name,
                  nodes[static_cast<size_t>(link.to)].name);
  if (!topology().has_route(from, to)) {
    throw Error(
        ErrorKind::kRunFailed,
        fmt::format("{} and rank {} cannot reach rank {} any other way", what, source, destination),
        "order the ring so that it does not need this hop");
  }
  const Route detour = topology().route(from, to);
  notes_.push_back(fmt::format("{}: rank {} reaches rank {} over {} links instead of {}", what,
                               source, destination, detour.links.size(), usual.links.size()));
  return detour;
}

/// Ranks on one processor hand data over by a copy there.
Path MachineModel::local_path() const {
  Path path;
  path.latency_ps = picoseconds_from_seconds(machine_.copy.start_s);
  path.cap = machine_.copy.bytes_per_s > 0 ? machine_.copy.bytes_per_s * kPerPicosecond
                                           : MaxMinSystem::kUnlimited;
  path.narrowest = path.cap;
  return path;
}

Path MachineModel::path(int source, int destination) {
  if (processor(source) == processor(destination)) return local_path();
  const Route found = route(source, destination);
  Path path;
  path.links = found.links;
  path.latency_ps = found.latency_ps;
  path.cap = MaxMinSystem::kUnlimited;
  path.narrowest = found.bytes_per_s * kPerPicosecond;
  for (const CarrierId carrier : carriers_of(topology(), processor(source), found)) {
    path.resources.push_back(carrier_resource(carrier));
  }
  return path;
}

int MachineModel::sharers_of(int rank) const {
  const auto processors = static_cast<int>(machine_.processors.size());
  const auto ranks = static_cast<int>(slowness_.size());
  return processors > 0 ? (ranks - 1 - rank % processors) / processors + 1 : 1;
}

double MachineModel::alone_ps(int rank, const Op& op) const {
  return op_seconds(machine_, problem_, op, sharers_of(rank)) / kPerPicosecond;
}

double MachineModel::copy_work_ps(int rank, int64_t index, Bytes bytes) const {
  return byte_seconds(machine_.copy, bytes, "copy rate") / kPerPicosecond *
         slowness_[static_cast<size_t>(rank)] * noise_of(rank, index);
}

}  // namespace ring
