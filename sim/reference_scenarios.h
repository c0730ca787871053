// Reference scenarios: rings and machines with known exact answers, for tests and benchmarks.
#pragma once

#include <memory>
#include <vector>

#include "core/machine.h"
#include "core/ring_program.h"

namespace ring {

/// A one-way ring of `ranks` that goes `ranks` - 1 steps. In each a rank sends `bytes` to the next
/// as `messages` equal messages, each on a lane of its own so that they move at once, computes, and
/// receives as much; it goes on when all is done.
struct RingScenario {
  int ranks = 8;
  int messages = 1;
  Bytes bytes = Bytes{64} << 20;
  Picoseconds compute_ps = 5'000'000'000;
  /// Rank r in step s computes ((7919 r + 104729 s) mod 1,000,003) ns longer.
  bool is_irregular = false;
  Protocol protocol = Protocol::kRendezvous;
};

/// Lane 0 computes, then come `messages` send lanes and as many receive lanes. Throws Error(kUsage)
/// unless there are two ranks, and messages that divide the bytes.
std::unique_ptr<ProgramSource> ring_scenario(const RingScenario& scenario);

/// GPUs of which each has a link to the next, full duplex, one per neighbour pair.
Machine ring_of_gpus(int ranks, double bytes_per_s = 25e9, Picoseconds latency_ps = 5'000'000);

/// Nodes of GPUs behind a non-blocking switch (300e9 B/s and 1 us per side), each with one NIC
/// (25e9 B/s each way, 2.5 us per side) on a non-blocking network. The ranks are placed on the GPUs
/// in the given order; GPU g is number g % gpus_per_node of node g / gpus_per_node.
Machine nodes_with_one_nic(int nodes, int gpus_per_node, const std::vector<int>& order);

}  // namespace ring
