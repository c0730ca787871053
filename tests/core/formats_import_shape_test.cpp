// Topologies made of imported files: how GPUs are joined in them, and over what.
#include "core/formats/import/shape_of.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/hop_label.h"
#include "core/topology_file.h"
#include "tests/core/formats_testing.h"

namespace ring {
namespace {

using testing::HasSubstr;

Shape shape_of_text(const std::string& text, const ShapeRates& rates = {}) {
  Findings findings;
  return shape_of(parse_topo_matrix(text, "topo.txt"), "topo.txt", rates, findings);
}

std::string label(const Shape& shape, size_t from, size_t to) {
  const int a = shape.processors[from], b = shape.processors[to];
  if (!shape.topology.has_route(a, b)) return "none";
  return hop_label(shape.topology, shape.topology.route(a, b));
}

double width(const Shape& shape, size_t from, size_t to) {
  return shape.topology.route(shape.processors[from], shape.processors[to]).bytes_per_s;
}

/// Every PCIe class is told back from the tree that is built of it.
TEST(ShapeOf, EveryClassOfHopComesBack) {
  const Shape shape = shape_of_text(
      "      GPU0 GPU1 GPU2 GPU3 GPU4 GPU5\n"
      "GPU0   X   PIX  PXB  PHB  NODE SYS\n"
      "GPU1  PIX   X   PXB  PHB  NODE SYS\n"
      "GPU2  PXB  PXB   X   PHB  NODE SYS\n"
      "GPU3  PHB  PHB  PHB   X   NODE SYS\n"
      "GPU4  NODE NODE NODE NODE  X   SYS\n"
      "GPU5  SYS  SYS  SYS  SYS  SYS   X \n");
  EXPECT_EQ(label(shape, 0, 1), "PIX");
  EXPECT_EQ(label(shape, 0, 2), "PXB");
  EXPECT_EQ(label(shape, 1, 3), "PHB");
  EXPECT_EQ(label(shape, 2, 4), "NODE");
  EXPECT_EQ(label(shape, 5, 0), "SYS");
  EXPECT_EQ(label(shape, 4, 5), "SYS");
}

TEST(ShapeOf, AnotherSocketIsFartherThanAnotherBridge) {
  const Shape shape = shape_of_text(
      "     GPU0 GPU1 GPU2 GPU3\n"
      "GPU0  X   NODE SYS  SYS\n"
      "GPU1 NODE  X   SYS  SYS\n"
      "GPU2 SYS  SYS   X   PHB\n"
      "GPU3 SYS  SYS  PHB   X \n");
  const auto latency = [&shape](size_t from, size_t to) {
    return shape.topology.route(shape.processors[from], shape.processors[to]).latency_ps;
  };
  EXPECT_LT(latency(2, 3), latency(0, 1));
  EXPECT_LT(latency(0, 1), latency(1, 2)) << "the second socket has one bridge only";
  EXPECT_EQ(label(shape, 1, 2), "SYS");
  EXPECT_EQ(label(shape, 0, 1), "NODE");
}

TEST(ShapeOf, HopsWithoutPeerAccessAreSaidToBeAssumed) {
  const std::string links = " GPU0 GPU1\nGPU0 X PHB\nGPU1 PHB X\n\ntext\n\n";
  const auto findings_of = [&links](const std::string& access) {
    Findings findings;
    const std::string text = links + " GPU0 GPU1\nGPU0 X " + access + "\nGPU1 " + access + " X\n";
    shape_of(parse_topo_matrix(text, "topo.txt"), "topo.txt", {}, findings);
    return findings;
  };
  EXPECT_TRUE(has_finding(findings_of("GNS"), FindingKind::kAssumed, "without peer access"));
  EXPECT_FALSE(has_finding(findings_of("OK"), FindingKind::kAssumed, "without peer access"));
}

TEST(ShapeOf, NvlinksAreDirectWhereThePortsSufficeAndElseASwitch) {
  const Shape mesh =
      shape_of_text(" GPU0 GPU1 GPU2\nGPU0 X NV2 NV4\nGPU1 NV2 X NV2\nGPU2 NV4 NV2 X\n");
  EXPECT_EQ(mesh.topology.nodes().size(), 3U);
  EXPECT_EQ(width(mesh, 0, 1), 2 * 25e9);
  EXPECT_EQ(width(mesh, 0, 2), 4 * 25e9);
  const Shape switched =
      shape_of_text(" GPU0 GPU1 GPU2\nGPU0 X NV12 NV12\nGPU1 NV12 X NV12\nGPU2 NV12 NV12 X\n");
  EXPECT_EQ(switched.topology.nodes().size(), 4U) << "24 links are more than a GPU has";
  EXPECT_EQ(label(switched, 0, 2), "NVLink");
  EXPECT_EQ(width(switched, 0, 2), 12 * 25e9);
}

TEST(ShapeOf, WhatIsNotKnownIsNoLink) {
  const Shape pair =
      shape_of_text(" GPU0 GPU1 GPU2\nGPU0 X NV1 SYS\nGPU1 NV1 X SYS\nGPU2 SYS SYS X\n");
  EXPECT_EQ(label(pair, 0, 1), "NVLink");
  EXPECT_EQ(label(pair, 0, 2), "SYS");
  EXPECT_THAT(error_of([] { shape_of_text(" GPU0 GPU1\nGPU0 X OK\nGPU1 OK X\n"); }),
              HasSubstr("peer access"));
}

TEST(ShapeOf, GivenRatesWinAndAssumedOnesAreSaid) {
  const std::string text =
      " GPU0 GPU1 NIC0\nGPU0 X NV1 PIX\nGPU1 NV1 X PIX\nNIC0 PIX PIX X\n\nNIC0: mlx5_0\n";
  Findings findings;
  const TopoMatrix matrix = parse_topo_matrix(text, "t");
  shape_of(matrix, "t", {}, findings);
  EXPECT_TRUE(has_finding(findings, FindingKind::kAssumed, "one NVLink"));
  EXPECT_TRUE(has_finding(findings, FindingKind::kAssumed, "NIC whose rate"));
  EXPECT_TRUE(has_finding(findings, FindingKind::kAssumed, "PCIe"));
  findings.clear();
  const Shape shape = shape_of(matrix, "t", {20e9, 0, 12e9, 10e9, 1}, findings);
  EXPECT_TRUE(findings.empty());
  EXPECT_EQ(width(shape, 0, 1), 20e9);
}

TEST(ShapeOf, SeveralNodesMeetOnRails) {
  const std::string text =
      " GPU0 GPU1 NIC0 NIC1\nGPU0 X NV4 PIX SYS\nGPU1 NV4 X SYS PIX\nNIC0 PIX SYS X SYS\n"
      "NIC1 SYS PIX SYS X\n";
  const Shape shape = shape_of_text(text, {0, 0, 0, 12.5e9, 2});
  ASSERT_EQ(shape.processors.size(), 4U);
  EXPECT_EQ(label(shape, 0, 2), "NET");
  EXPECT_EQ(width(shape, 0, 2), 12.5e9);
  const Route route = shape.topology.route(shape.processors[1], shape.processors[3]);
  EXPECT_THAT(nodes_between(shape.topology, route), HasSubstr("node0.nic1, rail1, node1.nic1"))
      << "over the NIC beside it";
  EXPECT_THAT(error_of([] {
                shape_of_text(" GPU0 GPU1\nGPU0 X NV4\nGPU1 NV4 X\n", {0, 0, 0, 0, 2});
              }),
              HasSubstr("no NIC"));
}

TEST(ShapeOf, NcclFilesStateTheGeneration) {
  const std::string text =
      "<system version='1'><cpu numaid='0'>"
      "<pci busid='0000:01:00.0' class='0x030200' link_speed='16 GT/s' link_width='16'>"
      "<gpu dev='0' sm='60' rank='0'><nvlink target='0000:02:00.0' count='4'/></gpu></pci>"
      "<pci busid='0000:02:00.0' class='0x030200' link_speed='16 GT/s' link_width='16'>"
      "<gpu dev='1' sm='60' rank='1'><nvlink target='0000:01:00.0' count='4'/></gpu></pci>"
      "</cpu></system>";
  Findings findings;
  const NcclTopology topology = parse_nccl_topology(text, "t.xml");
  const Shape shape = shape_of(topology, "t.xml", {}, findings);
  EXPECT_EQ(width(shape, 0, 1), 4 * 20e9) << "NVLink of sm_60";
  EXPECT_EQ(gpu_preset_of(topology), "");
}

/// Every named shape and every imported one reads back the same.
TEST(TopologyToml, ReadsBackToTheSameTopology) {
  std::vector<Shape> shapes;
  for (const ShapeInfo& info : all_shapes()) shapes.push_back(make_shape(info.name));
  shapes.push_back(make_shape("dgx-a100:nodes=2,order=15-0-1-2-3-4-5-6-7-8-9-10-11-12-13-14"));
  shapes.push_back(make_shape("ring:ranks=4,half-duplex=yes,bandwidth=12345.678MB/s"));
  shapes.push_back(shape_of_text(" GPU0 GPU1\nGPU0 X SYS\nGPU1 SYS X\n"));
  for (const Shape& shape : shapes) {
    const std::string text = topology_toml(shape);
    const Shape read = parse_topology(text, "t.toml");
    EXPECT_EQ(read.processors, shape.processors) << shape.name;
    ASSERT_EQ(read.topology.nodes().size(), shape.topology.nodes().size()) << shape.name;
    for (size_t n = 0; n < read.topology.nodes().size(); ++n) {
      const Node &a = read.topology.nodes()[n], &b = shape.topology.nodes()[n];
      EXPECT_EQ(std::tie(a.name, a.kind, a.host), std::tie(b.name, b.kind, b.host)) << shape.name;
    }
    ASSERT_EQ(read.topology.links().size(), shape.topology.links().size()) << shape.name;
    for (size_t l = 0; l < read.topology.links().size(); ++l) {
      const Link &a = read.topology.links()[l], &b = shape.topology.links()[l];
      EXPECT_EQ(std::tie(a.from, a.to, a.bytes_per_s, a.latency_ps, a.link_class, a.duplex_group),
                std::tie(b.from, b.to, b.bytes_per_s, b.latency_ps, b.link_class, b.duplex_group))
          << shape.name;
    }
    EXPECT_EQ(topology_toml(read), text);
  }
}

}  // namespace
}  // namespace ring
