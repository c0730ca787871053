// Ring placement on known machines, and on random ones against brute force.
#include "sim/placement.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "core/error.h"
#include "core/topology_shapes.h"

namespace ring {
namespace {

constexpr Picoseconds kMicrosecond = 1'000'000;

Placement place(const Shape& shape, const PlacementOptions& options = {}) {
  return place_ring(shape.topology, shape.processors, options);
}

std::map<std::string, int> labels_of(const PlacedRing& ring) {
  std::map<std::string, int> labels;
  for (const PlacedHop& hop : ring.hops) ++labels[hop.label];
  return labels;
}

TEST(Placement, TheCubeMeshHasOneRingOfDoubleLinks) {
  const Placement placement = place(make_shape("dgx-1v"));
  const std::vector<int> forward{0, 3, 2, 1, 5, 6, 7, 4};
  EXPECT_EQ(placement.order.order, forward);
  EXPECT_TRUE(placement.closes_over_nvlink);
  EXPECT_TRUE(placement.order.is_best);
  EXPECT_EQ(placement.rings.front().bytes_per_s, 50e9);
  for (const PlacedHop& hop : placement.rings.front().hops) {
    EXPECT_EQ(hop.at_once_bytes_per_s, 50e9) << "every hop has its link to itself";
  }
}

/// A V100 has six links of 25 GB/s: four lie in the ring of double links (there and back), two in
/// the ring of single links. All 6 x 25 GB/s are used.
TEST(Placement, TheCubeMeshCarriesSixChannels) {
  const Placement placement = place(make_shape("dgx-1v"));
  EXPECT_EQ(placement.rings.size(), 4U);
  EXPECT_EQ(placement.channels, 6);
  EXPECT_DOUBLE_EQ(placement.channel_bytes_per_s, 25e9);
  EXPECT_DOUBLE_EQ(placement.total_bytes_per_s, 150e9);
  for (const PlacedRing& ring : placement.rings) {
    EXPECT_EQ(labels_of(ring), (std::map<std::string, int>{{"NVLink", 8}}));
    for (const PlacedHop& hop : ring.hops) {
      EXPECT_DOUBLE_EQ(hop.with_all_bytes_per_s, ring.bytes_per_s);
    }
  }
}

TEST(Placement, AnNvswitchCarriesOneRingOfAllItsLinks) {
  const Placement placement = place(make_shape("dgx-a100"));
  EXPECT_TRUE(placement.closes_over_nvlink);
  EXPECT_EQ(placement.rings.size(), 1U);
  EXPECT_EQ(placement.channels, 12) << "300 GB/s are twelve NVLinks";
  EXPECT_DOUBLE_EQ(placement.bound_bytes_per_s, 300e9);
}

/// Two sockets: any ring crosses between them at least twice.
TEST(Placement, APcieBoxCrossesSocketsTwice) {
  const Placement placement = place(make_shape("pcie-box:order=0-4-1-5-2-6-3-7"));
  EXPECT_FALSE(placement.closes_over_nvlink);
  const auto labels = labels_of(placement.rings.front());
  EXPECT_EQ(labels.at("SYS"), 2);
  EXPECT_EQ(labels.at("PIX"), 4) << "both GPUs of every switch are neighbours";
  EXPECT_EQ(labels.at("PHB"), 2);
  EXPECT_EQ(placement.rings.front().bytes_per_s, 31.5e9);
}

/// Two nodes of four GPUs with one NIC each: one hop out of each node, and the NIC to itself.
TEST(Placement, TwoNodesMeetTwiceHoweverTheyAreNumbered) {
  for (const std::string order : {"", ",order=0-4-1-5-2-6-3-7"}) {
    const Shape shape = make_shape("cluster:nodes=2,gpus=4,nics=1" + order);
    const Placement placement = place(shape);
    const auto labels = labels_of(placement.rings.front());
    EXPECT_EQ(labels.at("NET"), 2);
    EXPECT_EQ(labels.at("NVLink"), 6);
    EXPECT_EQ(placement.order.sharing, 1);
    EXPECT_EQ(placement.rings.front().bytes_per_s, 25e9);
    EXPECT_EQ(placement.rings.size(), 1U) << "the NIC is full";
  }
}

/// With a NIC for each GPU the rings lie on rails: as many as there are NICs.
TEST(Placement, RailsCarryARingEach) {
  const Placement placement = place(make_shape("dgx-a100:nodes=2"));
  EXPECT_EQ(placement.rings.size(), 8U);
  EXPECT_EQ(placement.channels, 8);
  EXPECT_DOUBLE_EQ(placement.total_bytes_per_s, 8 * 25e9);
  EXPECT_DOUBLE_EQ(placement.bound_bytes_per_s, 8 * 25e9);
  std::map<std::string, int> nics;
  for (const PlacedRing& ring : placement.rings) {
    EXPECT_EQ(labels_of(ring).at("NET"), 2);
    for (const PlacedHop& hop : ring.hops) EXPECT_GE(hop.with_all_bytes_per_s, 25e9 * (1 - 1e-9));
  }
}

TEST(Placement, ManyNodesAreCrossedOnceEach) {
  const Placement placement = place(make_shape("dgx-a100:nodes=4"), {0, 1});
  EXPECT_EQ(labels_of(placement.rings.front()).at("NET"), 4);
  EXPECT_TRUE(placement.order.is_best) << "at its bound";
}

TEST(Placement, OneProcessorAndNoWay) {
  Topology topology;
  const int a = topology.add_node({"a", NodeKind::kGpu, 0});
  const int b = topology.add_node({"b", NodeKind::kGpu, 0});
  EXPECT_EQ(place_ring(topology, {a}).rings.size(), 1U);
  EXPECT_TRUE(place_ring(topology, {a}).rings.front().hops.empty());
  EXPECT_TRUE(place_ring(topology, {a, b}).rings.empty());
  EXPECT_THROW(place_ring(topology, {a, a}), Error);
}

/// Hops of a half duplex link get half of it each.
TEST(Placement, SharedCapacityIsDivided) {
  Topology topology;
  const int a = topology.add_node({"a", NodeKind::kGpu, 0});
  const int b = topology.add_node({"b", NodeKind::kGpu, 0});
  topology.connect(a, b, 10e9, kMicrosecond, "pcie", true);
  const Placement placement = place_ring(topology, {a, b});
  for (const PlacedHop& hop : placement.rings.front().hops) {
    EXPECT_EQ(hop.alone_bytes_per_s, 10e9);
    EXPECT_EQ(hop.at_once_bytes_per_s, 5e9);
  }
}

Topology random_mesh(int gpus) {
  Topology topology;
  for (int g = 0; g < gpus; ++g) topology.add_node({std::to_string(g), NodeKind::kGpu, 0});
  const int hub = topology.add_node({"hub", NodeKind::kHost, 0});
  for (int a = 0; a < gpus; ++a) {
    topology.connect(a, hub, 8e9, 4 * kMicrosecond, "pcie");
    for (int b = 0; b < a; ++b) {
      const int links = *rc::gen::inRange(0, 3);
      if (links > 0) topology.connect(a, b, links * 25e9, kMicrosecond, "nvlink");
    }
  }
  return topology;
}

/// Widths of the hops of a ring, least first: a better ring has more there.
std::vector<double> widths(const Topology& topology, const std::vector<int>& order) {
  std::vector<double> widths;
  for (size_t i = 0; i < order.size(); ++i) {
    widths.push_back(topology.route(order[i], order[(i + 1) % order.size()]).bytes_per_s);
  }
  std::sort(widths.begin(), widths.end());
  return widths;
}

RC_GTEST_PROP(Placement, NoOrderHasWiderHops, ()) {
  const int gpus = *rc::gen::inRange(2, 7);
  const Topology topology = random_mesh(gpus);
  std::vector<int> order(static_cast<size_t>(gpus));
  std::iota(order.begin(), order.end(), 0);
  const Placement placement = place_ring(topology, order);
  std::vector<double> best;
  do {
    best = std::max(best, widths(topology, order));
  } while (std::next_permutation(order.begin() + 1, order.end()));
  RC_ASSERT(widths(topology, placement.rings.front().processors) == best);
}

/// What is given away is there: no link carries more than it can, and every ring gets its rate.
RC_GTEST_PROP(Placement, AllRingsTogetherFit, ()) {
  const int gpus = *rc::gen::inRange(2, 7);
  const Topology topology = random_mesh(gpus);
  std::vector<int> order(static_cast<size_t>(gpus));
  std::iota(order.begin(), order.end(), 0);
  const Placement placement = place_ring(topology, order);
  std::vector<double> load(topology.links().size(), 0);
  for (const PlacedRing& ring : placement.rings) {
    for (const PlacedHop& hop : ring.hops) {
      for (const int link : hop.route.links) load[static_cast<size_t>(link)] += ring.bytes_per_s;
    }
  }
  for (size_t l = 0; l < load.size(); ++l) {
    RC_ASSERT(load[l] <= topology.links()[l].bytes_per_s * (1 + 1e-9));
  }
  RC_ASSERT(placement.total_bytes_per_s <= placement.bound_bytes_per_s * (1 + 1e-9));
}

}  // namespace
}  // namespace ring
