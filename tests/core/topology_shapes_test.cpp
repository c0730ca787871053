#include "core/topology_shapes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "core/error.h"
#include "core/formats/file_io.h"
#include "core/machine_presets.h"
#include "core/ring_closure.h"
#include "core/ring_program.h"
#include "core/topology_file.h"

namespace ring {
namespace {

using ::testing::HasSubstr;

std::string message_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    return std::string(error.what()) + " | " + error.hint();
  }
  return "no error";
}

Route hop(const Shape& shape, int from, int to) {
  return shape.topology.route(shape.processors[static_cast<size_t>(from)],
                              shape.processors[static_cast<size_t>(to)]);
}

TEST(TopologyShapes, EveryNamedShapeClosesItsRing) {
  for (const ShapeInfo& info : all_shapes()) {
    const Shape shape = make_shape(info.name);
    EXPECT_TRUE(check_ring(shape.topology, shape.processors).closes) << info.name;
    for (const Link& link : shape.topology.links()) {
      EXPECT_FALSE(link.is_calibrated) << info.name;
    }
  }
}

TEST(TopologyShapes, GpusOfANvswitchBoxMeetAtNvlinkSpeed) {
  for (const auto& [name, rate] : {std::pair("dgx-a100", 300e9), std::pair("hgx-h100", 450e9)}) {
    const Shape shape = make_shape(name);
    ASSERT_EQ(shape.processors.size(), 8U);
    for (int a = 0; a < 8; ++a) {
      for (int b = 0; b < 8; ++b) {
        if (a == b) continue;
        EXPECT_EQ(hop(shape, a, b).bytes_per_s, rate) << name << a << b;
      }
    }
    EXPECT_EQ(check_ring(shape.topology, shape.processors).common_class, "nvlink");
  }
}

TEST(TopologyShapes, EveryGpuHasItsOwnRail) {
  const Shape shape = make_shape("hgx-h100:nodes=3");
  ASSERT_EQ(shape.processors.size(), 24U);
  std::set<int> rail_links;
  for (int g = 0; g < 8; ++g) {
    const Route route = hop(shape, g, 8 + g);
    EXPECT_EQ(route.bytes_per_s, 50e9);
    for (const int link : route.links) {
      if (shape.topology.links()[static_cast<size_t>(link)].link_class == "nic") {
        EXPECT_TRUE(rail_links.insert(link).second) << "GPUs share a NIC";
      }
    }
  }
  EXPECT_EQ(rail_links.size(), 32U);  // box to NIC to rail, and back
}

TEST(TopologyShapes, NicsOfAClusterBelongToTheNearestGpus) {
  const Shape shape = make_shape("cluster:nodes=2,gpus=4,nics=2,order=0-4-1-5-2-6-3-7");
  const RingClosure closure = check_ring(shape.topology, shape.processors);
  for (const RingHop& h : closure.hops) {
    EXPECT_EQ(h.flows, 2) << h.from_rank;
    EXPECT_EQ(h.share_bytes_per_s, 12.5e9);
  }
}

// The public cube mesh: 8 pairs with one NVLink, 8 with two, 12 pairs with none.
TEST(TopologyShapes, CubeMeshHasTwelvePairsWithoutNvlink) {
  const Shape shape = make_shape("dgx-1v");
  std::map<double, int> pairs;
  int over_pcie = 0;
  for (int a = 0; a < 8; ++a) {
    for (int b = a + 1; b < 8; ++b) {
      const Route route = hop(shape, a, b);
      if (route.links.size() == 1) {
        ++pairs[route.bytes_per_s];
      } else {
        ++over_pcie;
        EXPECT_EQ(route.bytes_per_s, 15.75e9) << "GPUs must not forward for others";
      }
    }
  }
  EXPECT_EQ(pairs[25e9], 8);
  EXPECT_EQ(pairs[50e9], 8);
  EXPECT_EQ(over_pcie, 12);
}

TEST(RingClosure, CubeMeshClosesOverNvlinkInTheRightOrderOnly) {
  const Shape good = make_shape("dgx-1v:order=0-3-2-1-5-6-7-4");
  const RingClosure closed = check_ring(good.topology, good.processors);
  EXPECT_EQ(closed.common_class, "nvlink");
  for (const RingHop& h : closed.hops) EXPECT_EQ(h.share_bytes_per_s, 50e9);

  const Shape plain = make_shape("dgx-1v");
  const RingClosure crossing = check_ring(plain.topology, plain.processors);
  EXPECT_TRUE(crossing.closes);
  EXPECT_EQ(crossing.common_class, "");
  int slow = 0;
  for (const RingHop& h : crossing.hops) slow += h.link_class == "pcie";
  EXPECT_EQ(slow, 2);  // 3 -> 4 and 7 -> 0
  EXPECT_EQ(crossing.worst_hop, 3);
}

// Two nodes of four GPUs with one NIC each: in order, one hop leaves each node; interleaved, four.
TEST(RingClosure, NamesTheSharedNic) {
  const Shape good = make_shape("cluster:nodes=2,gpus=4");
  const RingClosure in_order = check_ring(good.topology, good.processors);
  EXPECT_EQ(in_order.worst_hop, 3);
  EXPECT_EQ(in_order.hops[3].flows, 1);
  EXPECT_EQ(in_order.hops[3].route.latency_ps, 7'000'000);
  EXPECT_EQ(in_order.hops[0].route.latency_ps, 2'000'000);

  const Shape bad = make_shape("cluster:nodes=2,gpus=4,order=0-4-1-5-2-6-3-7");
  const RingClosure interleaved = check_ring(bad.topology, bad.processors);
  const RingHop& worst = interleaved.hops[static_cast<size_t>(interleaved.worst_hop)];
  EXPECT_EQ(worst.flows, 4);
  EXPECT_EQ(worst.share_bytes_per_s, 25e9 / 4);
  EXPECT_THAT(describe(interleaved, bad.topology), HasSubstr("NIC node0.nic0"));
  EXPECT_THAT(describe(interleaved, bad.topology), HasSubstr("shared by 4 hops"));
}

TEST(RingClosure, FindsTheGap) {
  Topology topology;
  for (int i = 0; i < 3; ++i) topology.add_node({"g" + std::to_string(i), NodeKind::kGpu});
  topology.add_link({0, 1, 1e9, 0, -1, "x", false});
  topology.add_link({1, 2, 1e9, 0, -1, "x", false});
  const RingClosure open = check_ring(topology, {0, 1, 2});
  EXPECT_FALSE(open.closes);
  EXPECT_EQ(describe(open, topology), "does not close: there is no path from rank 2 to rank 0");
  EXPECT_EQ(describe(check_ring(topology, {0}), topology), "a ring of one rank has no hops");
}

TEST(RingClosure, CountsBothDirectionsOfAHalfDuplexLink) {
  const Shape shape = make_shape("ring:ranks=2,bandwidth=10GB/s,half-duplex=yes");
  const RingClosure closure = check_ring(shape.topology, shape.processors);
  EXPECT_EQ(closure.hops[0].share_bytes_per_s, 5e9);
}

TEST(TopologyShapes, TorusNeighboursAreNeighbours) {
  const Shape shape = make_shape("torus:rows=4,columns=6");
  ASSERT_EQ(shape.processors.size(), 24U);
  EXPECT_EQ(shape.topology.links().size(), 2U * 2 * 24);
  for (int r = 0; r < 24; ++r) EXPECT_EQ(hop(shape, r, (r + 1) % 24).links.size(), 1U) << r;
}

TEST(TopologyShapes, FatTreeAndLeafSpineHaveFullBisection) {
  for (const char* text : {"fat-tree:k=4,bandwidth=10GB/s", "leaf-spine:bandwidth=10GB/s"}) {
    const Shape shape = make_shape(text);
    const auto ranks = static_cast<int>(shape.processors.size());
    std::vector<int> across;  // every rank sends half way round: all flows cross the top
    for (int r = 0; r < ranks / 2; ++r) {
      across.push_back(shape.processors[static_cast<size_t>(r)]);
      across.push_back(shape.processors[static_cast<size_t>(r + ranks / 2)]);
    }
    const RingClosure closure = check_ring(shape.topology, across);
    for (const RingHop& h : closure.hops) EXPECT_EQ(h.share_bytes_per_s, 10e9) << text;
  }
  EXPECT_EQ(make_shape("fat-tree:k=6").processors.size(), 54U);
}

TEST(TopologyShapes, OversubscriptionNarrowsTheSpine) {
  const Shape shape = make_shape("leaf-spine:leaves=2,hosts=8,spines=2,bandwidth=10GB/s");
  const RingClosure closure = check_ring(shape.topology, [&] {
    std::vector<int> across;
    for (size_t r = 0; r < 8; ++r) {
      across.push_back(shape.processors[r]);
      across.push_back(shape.processors[r + 8]);
    }
    return across;
  }());
  for (const RingHop& h : closure.hops) EXPECT_EQ(h.share_bytes_per_s, 2 * 10e9 / 8);
}

TEST(TopologyShapes, RefusesWhatItDoesNotKnow) {
  EXPECT_THAT(message_of([] { make_shape("dgx-a10"); }), HasSubstr("did you mean 'dgx-a100'"));
  EXPECT_THAT(message_of([] { make_shape("dgx-a100:node=2"); }), HasSubstr("did you mean 'nodes'"));
  EXPECT_THAT(message_of([] { make_shape("ring:ranks=0"); }), HasSubstr("allowed are 1 to"));
  EXPECT_THAT(message_of([] { make_shape("ring:ranks"); }), HasSubstr("not key=value"));
  EXPECT_THAT(message_of([] { make_shape("ring:ranks=4,ranks=5"); }), HasSubstr("twice"));
  EXPECT_THAT(message_of([] { make_shape("ring:bandwidth=25"); }), HasSubstr("bandwidth"));
  EXPECT_THAT(message_of([] { make_shape("ring:ranks=4,order=0-1-2"); }), HasSubstr("3 of 4"));
  EXPECT_THAT(message_of([] { make_shape("ring:ranks=3,order=0-1-1"); }), HasSubstr("twice"));
  EXPECT_THAT(message_of([] { make_shape("cluster:nodes=2,nics=0"); }), HasSubstr("no NIC"));
  EXPECT_THAT(message_of([] { make_shape("fat-tree:k=5"); }), HasSubstr("even"));
}

TEST(MachinePresets, SayWhereTheirFiguresComeFrom) {
  for (const char* text : {"dgx-a100", "hgx-h100:nodes=2", "dgx-1v", "pcie-box",
                           "cluster:nodes=2,gpus=4,gpu=h100", "ring:ranks=4"}) {
    const Machine machine = machine_preset(text);
    EXPECT_FALSE(machine.is_calibrated);
    EXPECT_FALSE(machine.processors.empty());
    EXPECT_GT(machine.attend.at(DType::kF16).per_pair_dim_s, 0);
    EXPECT_FALSE(machine.provenance.at("attend").empty());
  }
  // A full block at the published rate: 2 (Dqk + Dv) flops per pair and head.
  Problem problem;
  problem.heads = 1;
  problem.kv_heads = 1;
  Op op;
  op.head_end = 1;
  op.visible_pairs = int64_t{1} << 30;
  const Machine h100 = machine_preset("hgx-h100");
  EXPECT_NEAR(attend_seconds(h100.attend.at(DType::kBF16), problem, op),
              5e-6 + 2.0 * 256 * std::pow(2.0, 30) / 640e12, 1e-12);
  EXPECT_EQ(machine_preset("cluster:gpus=2,gpu=h100").context.at("gpu"), "H100 SXM5 80 GB");
  EXPECT_EQ(machine_preset("cluster:gpu=v100").processors.size(), 8U);
  EXPECT_THAT(message_of([] { machine_preset("dgx-a100:gpu=h100"); }), HasSubstr("made of a100"));
  EXPECT_THAT(message_of([] { machine_preset("ring:gpu=h10"); }), HasSubstr("'h100'"));
}

constexpr std::string_view kFile = R"(name = "two boards"
ring = ["a1", "b0", "a0"]
[[node]]
name = "a0"
kind = "gpu"
[[node]]
name = "a1"
kind = "gpu"
[[node]]
name = "b0"
kind = "gpu"
host = 1
[[node]]
name = "s"
kind = "switch"
backplane = "40GB/s"
[[link]]
between = ["a0", "s"]
bandwidth = "10GB/s"
latency = "1us"
class = "pcie"
half-duplex = true
[[link]]
between = ["a1", "s"]
bandwidth = "10GB/s"
latency = "2us"
[[link]]
from = "b0"
to = "s"
bandwidth = "5GB/s"
latency = "3us"
[[link]]
from = "s"
to = "b0"
bandwidth = "4GB/s"
latency = "3us"
)";

TEST(TopologyFile, ReadsNodesLinksAndOrder) {
  const Shape shape = parse_topology(kFile, "t.toml");
  EXPECT_EQ(shape.name, "two boards");
  EXPECT_THAT(shape.processors, ::testing::ElementsAre(1, 2, 0));
  EXPECT_EQ(shape.topology.nodes()[2].host, 1);
  EXPECT_EQ(shape.topology.nodes()[3].backplane_bytes_per_s, 40e9);
  ASSERT_EQ(shape.topology.links().size(), 6U);
  EXPECT_GE(shape.topology.links()[0].duplex_group, 0);
  EXPECT_EQ(shape.topology.links()[0].duplex_group, shape.topology.links()[1].duplex_group);
  EXPECT_EQ(shape.topology.links()[2].duplex_group, -1);
  EXPECT_EQ(hop(shape, 0, 1).bytes_per_s, 4e9);
  EXPECT_EQ(hop(shape, 1, 0).bytes_per_s, 5e9);
  EXPECT_EQ(hop(shape, 0, 1).latency_ps, 5'000'000);
  EXPECT_EQ(shape.topology.links()[0].link_class, "pcie");
}

TEST(TopologyFile, TheDocumentedFileIsRead) {
  const std::string page = read_file(RING_SOURCE_DIR "/docs/topology.md");
  const size_t begin = page.find("```toml\n");
  ASSERT_NE(begin, std::string::npos);
  const size_t end = page.find("\n```", begin);
  const Shape shape =
      parse_topology(std::string_view(page).substr(begin + 8, end - begin - 7), "page");
  EXPECT_TRUE(check_ring(shape.topology, shape.processors).closes);
  for (const ShapeInfo& info : all_shapes()) {
    EXPECT_THAT(page, HasSubstr("| `" + std::string(info.name) + "` |"));
  }
}

/// The file with one piece of it replaced by another.
std::string broken(std::string_view piece, std::string_view by) {
  std::string text(kFile);
  const size_t at = text.find(piece);
  EXPECT_NE(at, std::string::npos) << piece;
  return text.replace(at, piece.size(), by);
}

TEST(TopologyFile, ErrorsNameFileAndLine) {
  const auto message = [](const std::string& text) {
    return message_of([&] { parse_topology(text, "t.toml"); });
  };
  EXPECT_THAT(message(broken("host = 1", "hots = 1")), HasSubstr("t.toml:12: unknown key 'hots'"));
  EXPECT_THAT(message(broken("host = 1", "hots = 1")), HasSubstr("did you mean 'host'"));
  EXPECT_THAT(message(broken("kind = \"switch\"", "kind = \"swich\"")),
              HasSubstr("t.toml:15: there is no kind 'swich', did you mean 'switch'?"));
  EXPECT_THAT(message(broken("\"1us\"", "\"1\"")), HasSubstr("t.toml:20: "));
  EXPECT_THAT(message(broken("\"10GB/s\"", "10")), HasSubstr("t.toml:19: 'bandwidth' must be"));
  EXPECT_THAT(message(broken("\"10GB/s\"", "\"0GB/s\"")), HasSubstr("t.toml:"));
  EXPECT_THAT(message(broken("[\"a0\", \"s\"]", "[\"a9\", \"s\"]")),
              HasSubstr("t.toml:18: there is no node 'a9'"));
  EXPECT_THAT(message(broken("[\"a0\", \"s\"]", "[\"a0\", \"a0\"]")), HasSubstr("itself"));
  EXPECT_THAT(message(broken("name = \"a1\"", "name = \"a0\"")),
              HasSubstr("there is a node 'a0' already"));
  EXPECT_THAT(message(broken("name = \"a1\"\n", "")), HasSubstr("'name' is missing"));
  EXPECT_THAT(message(broken("[[link]]", "[[link")), HasSubstr("t.toml:17: "));
  EXPECT_THAT(message("[[node]]\nname = \"s\"\nkind = \"switch\"\n"), HasSubstr("place ranks"));
  EXPECT_THAT(message(""), HasSubstr("place ranks"));
  EXPECT_THAT(message("node = 3\n"), HasSubstr("t.toml:1: 'node' must be tables"));
  EXPECT_THAT(message_of([] { read_topology_file("/no/such/file.toml"); }),
              HasSubstr("/no/such/file.toml"));
}

}  // namespace
}  // namespace ring
