// RandomNetwork: switches, links and flows drawn from a seed, for comparing solvers.
#pragma once

#include <fmt/format.h>

#include <random>
#include <string>
#include <vector>

#include "core/machine.h"
#include "core/program_text.h"
#include "core/topology.h"

namespace ring {

struct RandomFlow {
  int source = 0, destination = 0;  ///< Nodes; each flow has two of its own.
  Bytes bytes = 0;
  Picoseconds start_ps = 0;
};

/// All paths have the same latency: it lies on the links on which flows enter.
struct RandomNetwork {
  Topology topology;
  std::vector<RandomFlow> flows;
};

inline RandomNetwork draw_network(uint64_t seed) {
  constexpr Picoseconds kLatencyPs = 3'000'000;
  std::mt19937_64 random(seed);
  const auto between = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  const auto capacity = [&] { return between(1, 100) * 1e9; };
  RandomNetwork network;
  Topology& topology = network.topology;
  const int switches = between(1, 7);
  for (int i = 0; i < switches; ++i) {
    topology.add_node({fmt::format("s{}", i), NodeKind::kSwitch, 0});
    if (i > 0) topology.connect(between(0, i - 1), i, capacity(), 0, "trunk", between(0, 2) == 0);
  }
  for (int extra = between(0, switches); switches > 2 && extra > 0; --extra) {
    const int a = between(0, switches - 1), b = between(0, switches - 1);
    if (a != b) topology.connect(a, b, capacity(), 0, "trunk", between(0, 2) == 0);
  }
  const bool start_together = between(0, 1) == 0;
  for (int i = between(1, 14); i > 0; --i) {
    RandomFlow flow;
    flow.source = topology.add_node({fmt::format("a{}", i), NodeKind::kGpu, 0});
    flow.destination = topology.add_node({fmt::format("b{}", i), NodeKind::kGpu, 0});
    topology.connect(flow.source, between(0, switches - 1), capacity(), kLatencyPs, "in");
    topology.connect(between(0, switches - 1), flow.destination, capacity(), 0, "out");
    flow.bytes = Bytes{between(1, 1'000'000)} * 1000;
    flow.start_ps = start_together ? 0 : Picoseconds{between(0, 50'000)} * 1'000'000;
    network.flows.push_back(flow);
  }
  return network;
}

/// Flow i goes from rank 2i to rank 2i + 1.
inline Machine machine_of(const RandomNetwork& network) {
  Machine machine;
  machine.topology = network.topology;
  for (const RandomFlow& flow : network.flows) {
    machine.processors.push_back(flow.source);
    machine.processors.push_back(flow.destination);
  }
  return machine;
}

inline RingProgram program_of(const RandomNetwork& network) {
  std::string text = fmt::format("ranks {}\nlanes 2\n", 2 * network.flows.size());
  for (size_t i = 0; i < network.flows.size(); ++i) {
    const RandomFlow& flow = network.flows[i];
    text += fmt::format("r{} L0 compute time={}ps\n", 2 * i, flow.start_ps);
    text += fmt::format("r{} L1 send to={} msg=0 bytes={} after=r{}:0\n", 2 * i, 2 * i + 1,
                        flow.bytes, 2 * i);
    text += fmt::format("r{} L0 receive from={} msg=0 bytes={}\n", 2 * i + 1, 2 * i, flow.bytes);
  }
  return parse_program(text);
}

}  // namespace ring
