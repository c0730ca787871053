#include "sim/folding.h"

#include <algorithm>
#include <set>

#include "core/error.h"

namespace ring {

std::vector<CarrierId> carriers_of(const Topology& topology, int from, const Route& route) {
  std::vector<CarrierId> carriers;
  const auto add = [&](CarrierId carrier) {
    if (std::find(carriers.begin(), carriers.end(), carrier) == carriers.end()) {
      carriers.push_back(carrier);
    }
  };
  const auto add_node = [&](int node) {
    if (topology.nodes()[static_cast<size_t>(node)].backplane_bytes_per_s > 0) {
      add({CarrierId::Kind::kBackplane, node});
    }
  };
  add_node(from);
  for (const int number : route.links) {
    const Link& link = topology.links()[static_cast<size_t>(number)];
    add(link.duplex_group >= 0 ? CarrierId{CarrierId::Kind::kDuplexGroup, link.duplex_group}
                               : CarrierId{CarrierId::Kind::kLink, number});
    add_node(link.to);
  }
  return carriers;
}

namespace {

/// From which of the period's ranks to how far ahead in the ring (modulo the ranks).
using Hop = std::pair<int, int>;

std::set<Hop> hops_of(const ProgramSource& source, int period) {
  std::set<Hop> hops;
  const int ranks = source.ranks();
  OpBatch batch;
  for (int rank = 0; rank < period; ++rank) {
    const auto stream = source.stream(rank);
    int last_peer = -1;
    for (batch.clear(); stream->next(batch); batch.clear()) {
      for (const Op& op : batch.ops) {
        if (op.kind != OpKind::kSend || op.peer == last_peer) continue;
        last_peer = op.peer;
        hops.insert({rank, (op.peer - rank + ranks) % ranks});
      }
    }
  }
  return hops;
}

/// Everything but transfers must be the rank's own business.
bool is_machine_local(const Machine& machine, int ranks) {
  const auto count = static_cast<size_t>(ranks);
  if (machine.transfer != TransferKind::kLinks || machine.processors.size() < count) return false;
  if (machine.memory_bytes_per_s > 0 || machine.attend_contention != 1) return false;
  std::vector<int> used(machine.processors.begin(),
                        machine.processors.begin() + static_cast<std::ptrdiff_t>(count));
  std::sort(used.begin(), used.end());
  return std::adjacent_find(used.begin(), used.end()) == used.end();
}

bool is_undisturbed(const Disturbances& disturbances) {
  return disturbances.slow_ranks.empty() && disturbances.slow_links.empty() &&
         disturbances.broken_links.empty() && disturbances.late_starts.empty();
}

double capacity(const Topology& topology, CarrierId carrier) {
  const auto number = static_cast<size_t>(carrier.number);
  switch (carrier.kind) {
    case CarrierId::Kind::kLink:
      return topology.links()[number].bytes_per_s;
    case CarrierId::Kind::kBackplane:
      return topology.nodes()[number].backplane_bytes_per_s;
    case CarrierId::Kind::kDuplexGroup:
      break;  // Links of a group may differ; such machines are not folded.
  }
  return -1;
}

/// Collects the carriers of all copies of all hops and checks that the rotation maps carriers one
/// to one, with equal capacities.
class OrbitFinder {
 public:
  OrbitFinder(const Topology& topology, int copies) : topology_(topology), copies_(copies) {}

  /// `paths[k]` has the carriers of copy k of one hop. False: not symmetric.
  bool add(const std::vector<std::vector<CarrierId>>& paths) {
    for (size_t k = 0; k < paths.size(); ++k) {
      const std::vector<CarrierId>& path = paths[k];
      const std::vector<CarrierId>& next = paths[(k + 1) % paths.size()];
      if (path.size() != next.size()) return false;
      for (size_t i = 0; i < path.size(); ++i) {
        if (!map_to(path[i], next[i])) return false;
      }
    }
    for (size_t i = 0; i < paths.front().size(); ++i) {
      for (size_t j = i + 1; j < paths.front().size(); ++j) {
        together_.push_back({paths.front()[i], paths.front()[j]});
      }
    }
    return true;
  }

  /// False when a transfer meets an orbit twice.
  bool finish(Fold& fold) const {
    std::set<CarrierId> seen;
    for (const auto& [first, unused] : next_) {
      if (!seen.insert(first).second) continue;
      const int number = static_cast<int>(fold.orbits.size());
      Orbit orbit;
      orbit.representative = first;
      CarrierId carrier = first;
      do {
        seen.insert(carrier);
        fold.orbit_of[carrier] = number;
        ++orbit.size;
        carrier = next_.at(carrier);
      } while (carrier != first);
      orbit.share = static_cast<double>(orbit.size) / copies_;
      fold.orbits.push_back(orbit);
    }
    return std::none_of(together_.begin(), together_.end(), [&](const auto& pair) {
      return fold.orbit_of.at(pair.first) == fold.orbit_of.at(pair.second);
    });
  }

 private:
  bool map_to(CarrierId from, CarrierId to) {
    if (from.kind == CarrierId::Kind::kDuplexGroup || from.kind != to.kind) return false;
    if (capacity(topology_, from) != capacity(topology_, to)) return false;
    return next_.try_emplace(from, to).first->second == to &&
           previous_.try_emplace(to, from).first->second == from;
  }

  const Topology& topology_;
  int copies_;
  std::map<CarrierId, CarrierId> next_, previous_;
  std::vector<std::pair<CarrierId, CarrierId>> together_;  ///< On one path.
};

}  // namespace

void unfold(const Fold& fold, std::vector<Bytes>& carried_by_link) {
  std::vector<Bytes> of_orbit(fold.orbits.size(), 0);
  const auto link_of = [&](CarrierId carrier) -> Bytes& {
    return carried_by_link[static_cast<size_t>(carrier.number)];
  };
  for (const auto& [carrier, orbit] : fold.orbit_of) {
    if (carrier.kind == CarrierId::Kind::kLink) {
      of_orbit[static_cast<size_t>(orbit)] += link_of(carrier);
    }
  }
  for (const auto& [carrier, orbit] : fold.orbit_of) {
    const auto number = static_cast<size_t>(orbit);
    if (carrier.kind != CarrierId::Kind::kLink) continue;
    link_of(carrier) = of_orbit[number] * fold.copies() / fold.orbits[number].size;
  }
}

namespace {

/// The fold with this period, where the machine looks the same from every `period`-th rank.
std::optional<Fold> fold_of_period(const ProgramSource& source, const Machine& machine,
                                   int period) {
  const int ranks = source.ranks();
  Fold fold;
  fold.period = period;
  fold.ranks = ranks;
  OrbitFinder finder(machine.topology, fold.copies());
  std::vector<std::vector<CarrierId>> paths(static_cast<size_t>(fold.copies()));
  for (const auto& [rank, distance] : hops_of(source, period)) {
    Picoseconds latency_ps = -1;
    for (int copy = 0; copy < fold.copies(); ++copy) {
      const int from = rank + copy * period;
      const int node = processor_of(machine, from);
      const Route route =
          machine.topology.route(node, processor_of(machine, (from + distance) % ranks));
      if (latency_ps >= 0 && route.latency_ps != latency_ps) return std::nullopt;
      latency_ps = route.latency_ps;
      paths[static_cast<size_t>(copy)] = carriers_of(machine.topology, node, route);
    }
    if (!finder.add(paths)) return std::nullopt;
  }
  if (!finder.finish(fold)) return std::nullopt;
  return fold;
}

}  // namespace

std::optional<Fold> find_fold(const ProgramSource& source, const Machine& machine,
                              const SimulationOptions& options) {
  constexpr int kLongestPeriod = 64;  // Ranks of a node, or of a few.
  const int ranks = source.ranks(), rotation = source.rotation();
  const bool may_fold = options.allow_folding && !options.keep_timeline && !options.noise_seed;
  if (!may_fold || rotation < 1 || rotation >= ranks || ranks % rotation != 0) return std::nullopt;
  if (!is_undisturbed(options.disturbances) || !is_machine_local(machine, ranks)) {
    return std::nullopt;
  }
  const int longest = std::min(std::max(kLongestPeriod, rotation), ranks / 2);
  for (int period = rotation; period <= longest; period += rotation) {
    if (ranks % period != 0) continue;
    if (std::optional<Fold> fold = fold_of_period(source, machine, period)) return fold;
  }
  return std::nullopt;
}

}  // namespace ring
