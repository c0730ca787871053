// The solver alone: equations by hand, and progressive filling in small steps of its own.
#include "sim/max_min.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "sim/simulator.h"
#include "tests/sim/random_network.h"

namespace ring {
namespace {

using Ids = std::vector<int>;

std::vector<double> rates(MaxMinSystem& system, int groups) {
  Ids changed;
  system.solve(changed);
  std::vector<double> found;
  for (int group = 0; group < groups; ++group) found.push_back(system.rate(group));
  return found;
}

TEST(MaxMin, OneLinkIsSharedEqually) {
  MaxMinSystem system;
  const int link = system.add_resource(12);
  for (int i = 0; i < 3; ++i)
    system.set_flows(system.add_group(Ids{link}, MaxMinSystem::kNoCap), 1);
  EXPECT_EQ(rates(system, 3), (std::vector<double>{4, 4, 4}));
}

// x crosses both links, y the first (10), z the second (6): x = z = 3, y = 7.
TEST(MaxMin, TheNarrowestLinkDecidesFirst) {
  MaxMinSystem system;
  const int wide = system.add_resource(10), narrow = system.add_resource(6);
  system.set_flows(system.add_group(Ids{wide, narrow}, MaxMinSystem::kNoCap), 1);
  system.set_flows(system.add_group(Ids{wide}, MaxMinSystem::kNoCap), 1);
  system.set_flows(system.add_group(Ids{narrow}, MaxMinSystem::kNoCap), 1);
  EXPECT_EQ(rates(system, 3), (std::vector<double>{3, 7, 3}));
}

// A capped flow leaves the rest to the others; three flows of a group count three times.
TEST(MaxMin, CapsAndCounts) {
  MaxMinSystem system;
  const int link = system.add_resource(10);
  system.set_flows(system.add_group(Ids{link}, 1), 1);
  system.set_flows(system.add_group(Ids{link}, MaxMinSystem::kNoCap), 3);
  EXPECT_EQ(rates(system, 2), (std::vector<double>{1, 3}));
  system.set_flows(1, 0);
  EXPECT_EQ(rates(system, 1), (std::vector<double>{1}));
}

TEST(MaxMin, OnlyTheTouchedComponentIsSolvedAgain) {
  MaxMinSystem system;
  for (int i = 0; i < 100; ++i) {
    const int link = system.add_resource(10);
    for (int j = 0; j < 2; ++j) {
      system.set_flows(system.add_group(Ids{link}, MaxMinSystem::kNoCap), 1);
    }
  }
  Ids changed;
  system.solve(changed);
  const int64_t before = system.solved_groups();
  system.set_flows(77, 5);
  changed.clear();
  system.solve(changed);
  std::sort(changed.begin(), changed.end());
  EXPECT_EQ(changed, (Ids{76, 77}));
  EXPECT_EQ(system.solved_groups() - before, 2);
}

/// Progressive filling as the textbook says it: raise all rates that may still grow by the most
/// that every link allows; freeze what crosses a full link.
std::vector<double> fill(const std::vector<Ids>& paths, const std::vector<double>& capacity) {
  std::vector<double> rate(paths.size(), 0), left = capacity;
  std::vector<bool> is_frozen(paths.size(), false);
  while (std::find(is_frozen.begin(), is_frozen.end(), false) != is_frozen.end()) {
    std::vector<int> growing(capacity.size(), 0);
    for (size_t i = 0; i < paths.size(); ++i) {
      for (const int link : paths[i]) growing[static_cast<size_t>(link)] += is_frozen[i] ? 0 : 1;
    }
    double step = 1e300;
    for (size_t link = 0; link < left.size(); ++link) {
      if (growing[link] > 0) step = std::min(step, left[link] / growing[link]);
    }
    for (size_t link = 0; link < left.size(); ++link) left[link] -= step * growing[link];
    for (size_t i = 0; i < paths.size(); ++i) {
      if (is_frozen[i]) continue;
      rate[i] += step;
      is_frozen[i] = std::any_of(paths[i].begin(), paths[i].end(), [&](int link) {
        const auto number = static_cast<size_t>(link);
        return left[number] <= 1e-9 * capacity[number];
      });
    }
  }
  return rate;
}

TEST(MaxMin, EqualsProgressiveFillingOnRandomSystems) {
  std::mt19937 random(7);
  const auto below = [&](size_t n) { return static_cast<int>(random() % n); };
  for (int round = 0; round < 300; ++round) {
    MaxMinSystem system;
    std::vector<double> capacity(1 + static_cast<size_t>(below(12)));
    for (double& value : capacity) system.add_resource(value = 1 + below(50));
    std::vector<Ids> paths(1 + static_cast<size_t>(below(20)));
    for (Ids& path : paths) {
      for (size_t link = 0; link < capacity.size(); ++link) {
        if (below(3) == 0) path.push_back(static_cast<int>(link));
      }
      if (path.empty()) path.push_back(below(capacity.size()));
      system.set_flows(system.add_group(path, MaxMinSystem::kNoCap), 1);
    }
    // Solved in parts, as during a simulation.
    rates(system, 0);
    for (size_t i = 0; i < paths.size(); i += 2) system.set_flows(static_cast<int>(i), 0);
    rates(system, 0);
    for (size_t i = 0; i < paths.size(); i += 2) system.set_flows(static_cast<int>(i), 1);
    const std::vector<double> found = rates(system, static_cast<int>(paths.size()));
    const std::vector<double> expected = fill(paths, capacity);
    for (size_t i = 0; i < paths.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-9 * 50);
  }
}

// The one that stays is solved before the one that leaves is looked at, and is then alone.
TEST(MaxMin, OneStaysWhereAnotherLeaves) {
  MaxMinSystem system;
  const int first = system.add_resource(6), second = system.add_resource(8);
  const int stays = system.add_group(Ids{first, second}, MaxMinSystem::kNoCap);
  const int leaves = system.add_group(Ids{first, second}, MaxMinSystem::kNoCap);
  system.set_flows(stays, 1);
  system.set_flows(leaves, 1);
  EXPECT_EQ(rates(system, 2), (std::vector<double>{3, 3}));
  system.set_flows(stays, 2);
  system.set_flows(leaves, 0);
  EXPECT_EQ(rates(system, 2), (std::vector<double>{3, 0}));
  system.set_flows(stays, 1);
  EXPECT_EQ(rates(system, 2), (std::vector<double>{6, 0}));
}

TEST(MaxMin, EveryChangeOfRandomSystemsEqualsProgressiveFilling) {
  std::mt19937 random(11);
  const auto below = [&](size_t n) { return static_cast<int>(random() % n); };
  for (int round = 0; round < 300; ++round) {
    MaxMinSystem system;
    std::vector<double> capacity(1 + static_cast<size_t>(below(5)));
    for (double& value : capacity) system.add_resource(value = 1 + below(50));
    std::vector<Ids> paths(1 + static_cast<size_t>(below(8)));
    std::vector<int> flows(paths.size(), 0);
    for (Ids& path : paths) {
      for (size_t link = 0; link < capacity.size(); ++link) {
        if (below(2) == 0) path.push_back(static_cast<int>(link));
      }
      if (path.empty()) path.push_back(below(capacity.size()));
      system.add_group(path, MaxMinSystem::kNoCap);
    }
    for (int change = 0; change < 40; ++change) {
      for (int several = below(4); several >= 0; --several) {
        const int group = below(paths.size());
        flows[static_cast<size_t>(group)] = below(3);
        system.set_flows(group, flows[static_cast<size_t>(group)]);
      }
      const std::vector<double> found = rates(system, static_cast<int>(paths.size()));
      std::vector<Ids> present;
      for (size_t i = 0; i < paths.size(); ++i) {
        present.insert(present.end(), static_cast<size_t>(flows[i]), paths[i]);
      }
      const std::vector<double> expected = fill(present, capacity);
      size_t at = 0;
      for (size_t i = 0; i < paths.size(); ++i) {
        if (flows[i] == 0) continue;
        ASSERT_NEAR(found[i], expected[at], 1e-9 * 50) << "round " << round << " group " << i;
        at += static_cast<size_t>(flows[i]);
      }
    }
  }
}

/// When each flow of the network ends, in seconds, by filling anew at every start and end.
std::vector<double> ends_by_filling(const RandomNetwork& network) {
  std::vector<double> capacity;
  std::vector<int> resource_of;
  std::vector<int> of_group(network.topology.links().size() + 1, -1);
  for (const Link& link : network.topology.links()) {
    int fresh = static_cast<int>(capacity.size());
    int& known = of_group[static_cast<size_t>(link.duplex_group + 1)];
    const bool is_new = link.duplex_group < 0 || known < 0;
    if (is_new) capacity.push_back(link.bytes_per_s);
    if (link.duplex_group >= 0) fresh = known = is_new ? fresh : known;
    resource_of.push_back(fresh);
  }
  const size_t count = network.flows.size();
  std::vector<Ids> path(count);
  std::vector<double> left(count), starts(count), ends(count, -1);
  for (size_t i = 0; i < count; ++i) {
    const RandomFlow& flow = network.flows[i];
    const Route route = network.topology.route(flow.source, flow.destination);
    for (const int link : route.links) path[i].push_back(resource_of[static_cast<size_t>(link)]);
    left[i] = static_cast<double>(flow.bytes);
    starts[i] = static_cast<double>(flow.start_ps + route.latency_ps) * 1e-12;
  }
  for (double now = 0;;) {
    std::vector<size_t> active;
    std::vector<Ids> active_paths;
    double next = 1e300;
    for (size_t i = 0; i < count; ++i) {
      if (ends[i] >= 0) continue;
      if (starts[i] > now) {
        next = std::min(next, starts[i]);
      } else {
        active.push_back(i);
        active_paths.push_back(path[i]);
      }
    }
    if (active.empty() && next == 1e300) return ends;
    const std::vector<double> rate = fill(active_paths, capacity);
    for (size_t k = 0; k < active.size(); ++k) {
      next = std::min(next, now + left[active[k]] / rate[k]);
    }
    for (size_t k = 0; k < active.size(); ++k) {
      double& rest = left[active[k]];
      rest -= rate[k] * (next - now);
      if (rest < 1e-6) ends[active[k]] = next;
    }
    now = next;
  }
}

TEST(Sharing, EqualsProgressiveFillingOnRandomNetworks) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    const RandomNetwork network = draw_network(seed);
    const SimulationResult result = simulate(program_of(network), machine_of(network));
    const std::vector<double> expected = ends_by_filling(network);
    for (const Slice& slice : result.timeline.slices) {
      if (slice.kind != OpKind::kReceive) continue;
      const double end_s = seconds_from_picoseconds(slice.end_ps);
      const double expected_s = expected[static_cast<size_t>(slice.op.rank / 2)];
      // Half a picosecond per event of rounding, against times from microseconds on.
      EXPECT_NEAR(end_s / expected_s, 1, 1e-6) << "seed " << seed << " rank " << slice.op.rank;
    }
  }
}

}  // namespace
}  // namespace ring
