// What a simulated program does: protocols, sharing, failures, disturbances, conservation.
#include "sim/simulator.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/error.h"
#include "core/program_text.h"
#include "sim/noise.h"
#include "sim/reference_scenarios.h"
#include "sim/replicas.h"
#include "tests/sim/random_network.h"

namespace ring {
namespace {

using testing::HasSubstr;

constexpr Picoseconds kMs = 1'000'000'000;

/// 1 GB/s, 1 us: 1 MB takes 1.001 ms.
Machine slow_ring(int ranks) { return ring_of_gpus(ranks, 1e9, 1'000'000); }

/// Rank r on core r modulo `cores`; copies at 1 GB/s.
Machine cores(int count) {
  Machine machine;
  machine.transfer = TransferKind::kReceiverCopy;
  machine.copy = {0, 1e9};
  machine.attend[DType::kF32] = {};
  for (int i = 0; i < count; ++i) {
    machine.processors.push_back(
        machine.topology.add_node({fmt::format("core{}", i), NodeKind::kCore, 0}));
  }
  return machine;
}

Picoseconds makespan_ps(const std::string& program, const Machine& machine,
                        const SimulationOptions& options = {}) {
  return simulate(parse_program(program), machine, options).makespan_ps;
}

std::map<std::pair<int, int64_t>, Slice> slices_of(const SimulationResult& result) {
  std::map<std::pair<int, int64_t>, Slice> slices;
  for (const Slice& slice : result.timeline.slices) {
    slices[{slice.op.rank, slice.op.index}] = slice;
  }
  return slices;
}

std::string error_of(const std::string& program, const Machine& machine) {
  try {
    makespan_ps(program, machine);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kRunFailed);
    return error.what();
  }
  ADD_FAILURE() << "the program finished";
  return {};
}

TEST(Simulator, EagerSendDoesNotWaitForTheReceiver) {
  const auto program = [](const char* protocol) {
    return fmt::format(
        "ranks 2\nlanes 2\n"
        "r0 L1 send to=1 msg=0 bytes=1000000 {0}\nr1 L0 compute time=5ms\n"
        "r1 L1 receive from=0 msg=0 bytes=1000000 after=r1:0\n",
        protocol);
  };
  const auto eager = slices_of(simulate(parse_program(program("eager")), slow_ring(2)));
  EXPECT_EQ(eager.at({0, 0}).end_ps, kMs + 1'000'000);
  EXPECT_EQ(eager.at({1, 1}).start_ps, 5 * kMs);
  EXPECT_EQ(eager.at({1, 1}).end_ps, 5 * kMs);
  const auto meeting = slices_of(simulate(parse_program(program("")), slow_ring(2)));
  EXPECT_EQ(meeting.at({0, 0}).start_ps, 5 * kMs);
  EXPECT_EQ(meeting.at({1, 1}).end_ps, 6 * kMs + 1'000'000);
}

TEST(Simulator, StepTakesTheLongerOfComputationAndTransferOncePrimed) {
  for (const Picoseconds compute_ps : {1 * kMs, 3 * kMs}) {
    for (const int ranks : {2, 3, 8}) {
      const RingScenario scenario{.ranks = ranks, .compute_ps = compute_ps};
      const Picoseconds transfer_ps = 2'689'354'560;
      EXPECT_EQ(simulate(*ring_scenario(scenario), ring_of_gpus(ranks)).makespan_ps,
                (ranks - 1) * std::max(compute_ps, transfer_ps));
    }
  }
}

// A contiguous causal ring without transfer cost: full blocks take 1 ms, diagonal ones half.
// Rank r works through blocks r, r-1, ..., 0 and each block comes from rank r-1.
std::string causal_ring(int ranks) {
  std::string text = fmt::format("ranks {}\nlanes 3\n", ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    int op = 0;
    const int next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
    text += fmt::format("r{} L1 send to={} msg=0 bytes=0\n", rank, next);
    text += fmt::format("r{} L0 compute time=500us\n", rank);
    op = 2;
    for (int step = 1; step < ranks; ++step) {
      // The buffer is free when the block in it was used; it is passed on after it came.
      text += fmt::format("r{} L2 receive from={} msg={} bytes=0 after=r{}:{}\n", rank, previous,
                          step - 1, rank, op - 1);
      const int received = op++;
      if (step + 1 < ranks) {
        text += fmt::format("r{} L1 send to={} msg={} bytes=0 after=r{}:{}\n", rank, next, step,
                            rank, received);
        ++op;
      }
      text += fmt::format("r{} L0 compute time={}us after=r{}:{}\n", rank, step <= rank ? 1000 : 0,
                          rank, received);
      ++op;
    }
  }
  return text;
}

TEST(Simulator, ContiguousCausalRingTakesRanksLessAHalf) {
  for (const int ranks : {2, 4, 8}) {
    const SimulationResult result = simulate(parse_program(causal_ring(ranks)), slow_ring(ranks));
    // Zero bytes still pay the latency of 1 us at every hop, at most once per step.
    const double blocks = static_cast<double>(result.makespan_ps) / kMs;
    EXPECT_NEAR(blocks, ranks - 0.5, 2e-3 * ranks);
    EXPECT_EQ(result.metrics.ranks[0].compute_ps, kMs / 2);
  }
}

// F25: all send first, grouped, and even/odd order.
std::string ring_step(int ranks, const std::string& order) {
  std::string text = fmt::format("ranks {}\nlanes 2\n", ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    const std::string send = fmt::format("send to={} msg=0 bytes=1000000", (rank + 1) % ranks);
    const std::string receive =
        fmt::format("receive from={} msg=0 bytes=1000000", (rank + ranks - 1) % ranks);
    const bool sends_first = order == "send first" || rank % 2 == 0;
    if (order == "grouped") {
      text += fmt::format("r{0} L0 {1}\nr{0} L1 {2}\n", rank, send, receive);
    } else {
      text += fmt::format("r{0} L0 {1}\nr{0} L0 {2}\n", rank, sends_first ? send : receive,
                          sends_first ? receive : send);
    }
  }
  return text;
}

TEST(Simulator, OrderOfSendsAndReceivesDecidesHopTimes) {
  const Picoseconds hop_ps = kMs + 1'000'000;
  for (const int ranks : {2, 3, 4, 5, 8}) {
    EXPECT_EQ(makespan_ps(ring_step(ranks, "grouped"), slow_ring(ranks)), hop_ps);
    EXPECT_EQ(makespan_ps(ring_step(ranks, "even odd"), slow_ring(ranks)),
              (ranks % 2 == 0 ? 2 : 3) * hop_ps);
    const std::string error = error_of(ring_step(ranks, "send first"), slow_ring(ranks));
    for (int rank = 0; rank < ranks; ++rank) {
      EXPECT_THAT(error, HasSubstr(fmt::format("rank {}, lane 0 (send number 0) waits for rank {} "
                                               "to receive message 0",
                                               rank, (rank + 1) % ranks)));
    }
  }
}

TEST(Simulator, MissingPeersAreErrorsThatNameWhatIsAwaited) {
  EXPECT_THAT(error_of("ranks 2\nlanes 2\nr1 L1 receive from=0 msg=7 bytes=8\n"
                       "r1 L0 compute time=1ms after=r1:0\n",
                       slow_ring(2)),
              testing::AllOf(HasSubstr("rank 1, lane 1 (receive number 0) waits for message 7 "
                                       "from rank 0"),
                             HasSubstr("rank 1, lane 0 (compute number 0) waits for number 0 of "
                                       "its lane 1")));
  EXPECT_THAT(error_of("ranks 2\nlanes 2\nr0 L1 send to=1 msg=3 bytes=8 eager\n", slow_ring(2)),
              HasSubstr("rank 1 never receives message 3 from rank 0"));
}

TEST(Simulator, SizesMustAgree) {
  EXPECT_THROW(makespan_ps("ranks 2\nlanes 2\nr0 L1 send to=1 msg=0 bytes=8\n"
                           "r1 L1 receive from=0 msg=0 bytes=9\n",
                           slow_ring(2)),
               Error);
}

TEST(Simulator, RanksOnOneCoreShareIt) {
  const std::string program =
      "ranks 2\nlanes 2\nr0 L0 copy bytes=1000000\nr1 L0 copy bytes=3000000\n";
  // 1 MB and 3 MB at 1 GB/s: alone 1 and 3 ms. Together both run at half speed for 2 ms.
  EXPECT_EQ(makespan_ps(program, cores(2)), 3 * kMs);
  const auto shared = slices_of(simulate(parse_program(program), cores(1)));
  EXPECT_EQ(shared.at({0, 0}).end_ps, 2 * kMs);
  EXPECT_EQ(shared.at({1, 0}).end_ps, 4 * kMs);
  Machine narrow = cores(2);
  narrow.memory_bytes_per_s = 1e9;  // Two copies at once get half of it each.
  EXPECT_EQ(makespan_ps(program, narrow), 4 * kMs);
}

TEST(Simulator, ReceiverCopyWakesTheWaitingLanes) {
  Machine machine = cores(2);
  machine.wakeup_s = 10e-6;
  const auto slices = slices_of(simulate(
      parse_program("ranks 2\nlanes 2\nr0 L0 compute time=1ms\n"
                    "r0 L1 send to=1 msg=0 bytes=1000000 after=r0:0\nr0 L1 compute time=0ps\n"
                    "r1 L1 receive from=0 msg=0 bytes=1000000\n"),
      machine));
  const Picoseconds wake_ps = 10'000'000;
  EXPECT_EQ(slices.at({0, 1}).posted_ps, kMs + wake_ps);
  EXPECT_EQ(slices.at({1, 0}).start_ps, kMs + 2 * wake_ps);
  EXPECT_EQ(slices.at({1, 0}).end_ps, 2 * kMs + 2 * wake_ps);
  EXPECT_EQ(slices.at({0, 1}).end_ps, 2 * kMs + 2 * wake_ps);
  EXPECT_EQ(slices.at({0, 2}).start_ps, 2 * kMs + 3 * wake_ps);
}

TEST(Simulator, TopologyChangesChangeResults) {
  const RingScenario scenario{.ranks = 8, .compute_ps = 0};
  const auto time = [&](const Machine& machine) {
    return simulate(*ring_scenario(scenario), machine).makespan_ps;
  };
  const Picoseconds ring_ps = time(ring_of_gpus(8));
  EXPECT_LT(time(ring_of_gpus(8, 50e9)), ring_ps);
  EXPECT_GT(time(ring_of_gpus(8, 25e9, 50'000'000)), ring_ps);
  EXPECT_NE(time(nodes_with_one_nic(2, 4, {0, 1, 2, 3, 4, 5, 6, 7})), ring_ps);
  Machine limited = nodes_with_one_nic(1, 8, {0, 1, 2, 3, 4, 5, 6, 7});
  const Picoseconds free_ps = time(limited);
  for (Node& node : limited.topology.mutable_nodes()) {
    if (node.name == "n0.switch") node.backplane_bytes_per_s = 100e9;
  }
  EXPECT_GT(time(limited), free_ps);
}

TEST(Disturbances, SlowRankSlowLinkLateStart) {
  const RingScenario scenario{.ranks = 4};
  const auto time = [&](const Disturbances& disturbances) {
    SimulationOptions options;
    options.disturbances = disturbances;
    return simulate(*ring_scenario(scenario), ring_of_gpus(4), options).makespan_ps;
  };
  EXPECT_EQ(time({}), 15 * kMs);
  EXPECT_EQ(time({.slow_ranks = {{2, 2.0}}}), 30 * kMs);
  // 64 MiB at 5e9 B/s take 13.42177280 ms, and 5 us.
  EXPECT_EQ(time({.slow_links = {{1, 2, 5}}}), 3 * (13'421'772'800 + 5'000'000));
  EXPECT_EQ(time({.late_starts = {{3, 7 * kMs}}}), 22 * kMs);
}

TEST(Disturbances, BrokenLinkIsAvoidedWithANoteOrFails) {
  SimulationOptions options;
  options.disturbances.broken_links = {{0, 1}};
  const std::string one_hop =
      "ranks 4\nlanes 2\nr0 L0 send to=1 msg=0 bytes=1000000\nr1 L0 receive from=0 msg=0 "
      "bytes=1000000\n";
  Machine square;
  for (int i = 0; i < 4; ++i) {
    square.processors.push_back(
        square.topology.add_node({fmt::format("g{}", i), NodeKind::kGpu, 0}));
  }
  const int relay = square.topology.add_node({"relay", NodeKind::kSwitch, 0});
  square.topology.connect(0, 1, 1e9, 1'000'000, "direct");
  square.topology.connect(0, relay, 1e9, 1'000'000, "detour");
  const RingProgram program = parse_program(one_hop);
  try {
    simulate(program, square, options);
    ADD_FAILURE() << "there was no way";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("the link from 'g0' to 'g1' is down and rank 0 cannot "
                                        "reach rank 1 any other way"));
  }
  square.topology.connect(relay, 1, 1e9, 1'000'000, "detour");
  const SimulationResult detour = simulate(program, square, options);
  EXPECT_EQ(detour.makespan_ps, kMs + 2'000'000);
  EXPECT_THAT(detour.notes, testing::ElementsAre(HasSubstr("over 2 links instead of 1")));
  options.disturbances.broken_links = {{2, 3}};
  EXPECT_THROW(simulate(program, square, options), Error);  // There is no such link.
}

TEST(Noise, SeedsReproduceAndDiffer) {
  Machine machine = ring_of_gpus(4);
  machine.noise = {0.05, 0.02};
  const RingProgram program = materialize(*ring_scenario({.ranks = 4, .is_irregular = true}));
  const auto time = [&](uint64_t seed) {
    SimulationOptions options;
    options.noise_seed = seed;
    return simulate(program, machine, options).makespan_ps;
  };
  EXPECT_EQ(time(1), time(1));
  EXPECT_NE(time(1), time(2));
  ReplicaOptions options;
  options.draws = 101;
  const Spread spread = simulate_spread(program, machine, options);
  options.threads = 2;
  EXPECT_EQ(simulate_spread(program, machine, options).median_ps, spread.median_ps);
  EXPECT_LT(spread.low_ps, spread.median_ps);
  EXPECT_LT(spread.median_ps, spread.high_ps);
  EXPECT_LE(spread.high_ps, spread.p99_ps);
  // The slowest of three ranks' noise decides each step, so noise costs time, but not much.
  const Picoseconds quiet_ps = simulate(program, machine).makespan_ps;
  EXPECT_NEAR(static_cast<double>(spread.median_ps) / static_cast<double>(quiet_ps), 1.05, 0.06);
}

TEST(Noise, FactorsHaveTheirSpreadAndAMedianOfOne) {
  const NoiseFactors factors({0.1, 0}, 5);
  std::vector<double> logs;
  for (int i = 0; i < 20000; ++i) logs.push_back(std::log(factors.of_op(i % 7, i)));
  double sum = 0, squares = 0;
  for (const double value : logs) {
    sum += value;
    squares += value * value;
  }
  const double count = static_cast<double>(logs.size());
  // Three standard errors: 0.1 / sqrt(20000) = 0.0007 of the mean, 0.0005 of the deviation.
  EXPECT_NEAR(sum / count, 0, 0.0022);
  EXPECT_NEAR(std::sqrt(squares / count), 0.1, 0.0016);
}

TEST(Simulator, SameInputGivesTheSameBytes) {
  const RingProgram program = materialize(*ring_scenario({.ranks = 9, .is_irregular = true}));
  const SimulationResult a = simulate(program, ring_of_gpus(9));
  const SimulationResult b = simulate(program, ring_of_gpus(9));
  ASSERT_EQ(a.timeline.slices.size(), b.timeline.slices.size());
  for (size_t i = 0; i < a.timeline.slices.size(); ++i) {
    EXPECT_EQ(a.timeline.slices[i].op, b.timeline.slices[i].op);
    EXPECT_EQ(a.timeline.slices[i].start_ps, b.timeline.slices[i].start_ps);
    EXPECT_EQ(a.timeline.slices[i].end_ps, b.timeline.slices[i].end_ps);
  }
}

/// Random network programs with computation in between, for laws that always hold.
RingProgram busy_program(uint64_t seed) {
  const int ranks = 2 + static_cast<int>(seed % 7);
  return materialize(
      *ring_scenario({.ranks = ranks,
                      .messages = 1 << (seed % 4),
                      .compute_ps = static_cast<Picoseconds>(seed % 5) * kMs,
                      .is_irregular = seed % 2 == 0,
                      .protocol = seed % 3 == 0 ? Protocol::kEager : Protocol::kRendezvous}));
}

TEST(Laws, BytesAreConservedAndMetricsMatchTheTimeline) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const RingProgram program = busy_program(seed);
    const SimulationResult result = simulate(program, ring_of_gpus(program.ranks()));
    Bytes sent = 0, carried = 0;
    for (const RankProgram& rank : program.rank_programs) {
      for (const Op& op : rank.ops) sent += op.kind == OpKind::kSend ? op.bytes : 0;
    }
    for (const LinkUse& use : result.links) carried += use.bytes;
    EXPECT_EQ(carried, sent);
    EXPECT_EQ(result.metrics.bytes_sent, sent);
    const Metrics measured = measure(result.timeline);
    EXPECT_EQ(measured.makespan_ps, result.makespan_ps);
    for (size_t rank = 0; rank < measured.ranks.size(); ++rank) {
      EXPECT_EQ(measured.ranks[rank].compute_ps, result.metrics.ranks[rank].compute_ps);
      EXPECT_EQ(measured.ranks[rank].communication_ps, result.metrics.ranks[rank].communication_ps);
      EXPECT_EQ(measured.ranks[rank].exposed_ps, result.metrics.ranks[rank].exposed_ps);
      EXPECT_EQ(measured.ranks[rank].waiting_ps, result.metrics.ranks[rank].waiting_ps);
      EXPECT_EQ(measured.ranks[rank].finish_ps, result.metrics.ranks[rank].finish_ps);
    }
    EXPECT_DOUBLE_EQ(measured.overlap, result.metrics.overlap);
    EXPECT_DOUBLE_EQ(measured.imbalance, result.metrics.imbalance);
    EXPECT_EQ(measured.busiest_rank, result.metrics.busiest_rank);
    EXPECT_EQ(measured.idlest_rank, result.metrics.idlest_rank);
  }
}

TEST(Laws, FasterLinksNeverHurtARingWithRendezvous) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const RingProgram program = busy_program(seed);
    const auto time = [&](double bytes_per_s, Picoseconds latency_ps) {
      return simulate(program, ring_of_gpus(program.ranks(), bytes_per_s, latency_ps)).makespan_ps;
    };
    EXPECT_LE(time(50e9, 5'000'000), time(25e9, 5'000'000));
    EXPECT_LE(time(25e9, 1'000'000), time(25e9, 5'000'000));
  }
}

TEST(Laws, NumberingOfRanksDoesNotMatter) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    RandomNetwork network = draw_network(seed);
    const auto ends = [](const RandomNetwork& drawn) {
      std::map<int, Picoseconds> found;
      const SimulationResult result = simulate(program_of(drawn), machine_of(drawn));
      for (const Slice& slice : result.timeline.slices) {
        const RandomFlow& flow = drawn.flows[static_cast<size_t>(slice.op.rank / 2)];
        if (slice.kind == OpKind::kReceive) found[flow.source] = slice.end_ps;
      }
      return found;
    };
    const auto before = ends(network);
    std::reverse(network.flows.begin(), network.flows.end());
    const auto after = ends(network);
    for (const auto& [flow, end_ps] : before) {
      // The order of additions may differ, which can turn the rounding of an event or two.
      EXPECT_NEAR(static_cast<double>(after.at(flow)), static_cast<double>(end_ps), 20);
    }
  }
}

TEST(Simulator, CanBeStopped) {
  std::stop_source stop;
  stop.request_stop();
  SimulationOptions options;
  options.stop = stop.get_token();
  try {
    simulate(*ring_scenario({.ranks = 64}), ring_of_gpus(64), options);
    ADD_FAILURE() << "was not stopped";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInterrupted);
  }
}

}  // namespace
}  // namespace ring
