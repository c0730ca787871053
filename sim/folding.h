// Folding: simulating a few ranks of a program that repeats itself from rank to rank.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/machine.h"
#include "core/ring_program.h"
#include "sim/simulator.h"

namespace ring {

/// What carries transfers and has a capacity: a link direction, the two directions of a half-duplex
/// link, or the backplane of a node.
struct CarrierId {
  enum class Kind : uint8_t { kLink, kDuplexGroup, kBackplane };
  Kind kind = Kind::kLink;
  int number = 0;
  auto operator<=>(const CarrierId&) const = default;
};

/// The carriers of a route between different processors, in order.
std::vector<CarrierId> carriers_of(const Topology& topology, int from, const Route& route);

/// A carrier of the folded machine stands for an orbit: the carriers that rotations map onto each
/// other.
struct Orbit {
  CarrierId representative;
  /// Of the representative's capacity that the folded transfers may use: carriers of the orbit over
  /// rotations. A carrier that stays where it is under rotation serves all copies of a transfer.
  double share = 1;
  int size = 0;
};

/// Ranks 0 .. period - 1 stand for all: rank r behaves as rank r modulo period. That is exact when
/// the program and the machine look the same from rank r + period as from rank r: max-min fair
/// rates are unique, hence equal for transfers that a symmetry maps onto each other, and all such
/// transfers start together.
struct Fold {
  int period = 0;
  int ranks = 0;
  std::map<CarrierId, int> orbit_of;
  std::vector<Orbit> orbits;

  int copies() const { return ranks / period; }
};

/// Turns what the links carried for the simulated ranks into what each carried for all.
void unfold(const Fold& fold, std::vector<Bytes>& carried_by_link);

/// The fold of a program on a machine when it is provably exact, nothing otherwise. The period is a
/// multiple of the program's rotation: the ranks of a node, say, where the program alone repeats
/// from rank to rank. Costs two readings of the period's streams and a route for every hop of every
/// rank, less for periods that fail.
std::optional<Fold> find_fold(const ProgramSource& source, const Machine& machine,
                              const SimulationOptions& options);

/// The smallest rotation (ProgramSource::rotation) of a materialized program, found by comparing
/// all its ops; 0: none.
int find_rotation(const RingProgram& program);

/// The streams of ranks 0 .. period - 1 with the messages of each pair of ranks numbered in the
/// order in which they are sent, which is the same for all pairs that a rotation maps onto each
/// other. Peers stay as they are. `source` must outlive the result.
std::unique_ptr<ProgramSource> fold_source(const ProgramSource& source, int period);

}  // namespace ring
