#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/formats/import/nccl_info_log.h"
#include "core/formats/import/nccl_tests_log.h"
#include "core/formats/import/nccl_xml.h"
#include "tests/core/formats_testing.h"

namespace ring {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// Two GPUs under one bridge with a NIC each, joined through a switch that is not in the file; a
/// third GPU on the other socket, joined to the first directly.
std::string topology_xml(const std::string& width) {
  const auto pci = [&](const std::string& id, const std::string& cls, const std::string& inside) {
    return "<pci busid=\"" + id + "\" class=\"" + cls +
           "\" link_speed=\"16.0 GT/s PCIe\" link_width=\"" + width + "\">" + inside + "</pci>\n";
  };
  const std::string to_switch = "<nvlink target=\"0000:f0:00.0\" count=\"4\" tclass=\"0x068000\"/>";
  return "<!-- a comment -->\n<system version=\"1\">\n<cpu numaid=\"0\">" +
         pci("0000:10:00.0", "0x060400",
             pci("0000:11:00.0", "0x030200",
                 "<gpu dev=\"0\" sm=\"90\" rank=\"1\">" + to_switch + "</gpu>") +
                 pci("0000:12:00.0", "0x020700",
                     "<nic><net name=\"mlx5_3\" speed=\"100000\"/></nic>")) +
         pci("0000:20:00.0", "0x060400",
             pci("0000:21:00.0", "0x030200",
                 "<gpu dev=\"1\" sm=\"90\" rank=\"0\">" + to_switch + "</gpu>")) +
         "</cpu>\n<cpu numaid=\"1\">" +
         pci("0000:31:00.0", "0x030200", "<gpu dev=\"2\" sm=\"90\" rank=\"2\"/>") +
         "</cpu>\n</system>\n";
}

TEST(NcclTopology, JoinsGpusBySwitchesAndByPcie) {
  const NcclTopology topology = parse_nccl_topology(topology_xml("16"), "t.xml");
  ASSERT_EQ(topology.gpus.size(), 3U);
  EXPECT_EQ(topology.gpus[0].bus_id, "0000:21:00.0") << "in order of rank";
  EXPECT_EQ(topology.gpu_hops[0][1].text(), "NV4");
  EXPECT_EQ(topology.gpu_hops[0][2].text(), "SYS");
  ASSERT_EQ(topology.nics.size(), 1U);
  EXPECT_EQ(topology.nics[0].name, "mlx5_3");
  EXPECT_EQ(topology.nics[0].bytes_per_s, 12.5e9);
  EXPECT_EQ(topology.gpu_nic_hops[1][0].text(), "PIX");
  EXPECT_EQ(topology.gpu_nic_hops[0][0].text(), "PHB");
  EXPECT_NEAR(topology.gpus[0].pcie_bytes_per_s, 16e9 * 16 / 8 * 128 / 130, 1);
}

TEST(NcclTopology, WidthZeroMeansUnknownRate) {
  const NcclTopology topology = parse_nccl_topology(topology_xml("0"), "t.xml");
  EXPECT_EQ(topology.gpus[0].pcie_bytes_per_s, 0);
  EXPECT_TRUE(has_finding(topology.findings, FindingKind::kUnknown, "PCIe rate"));
}

TEST(NcclTopology, TemplatesAreToldByClass) {
  const NcclTopology topology = parse_nccl_topology(
      "<system><cpu numaid=\"0\"><pci busid=\"a\" class=\"0x060400\">"
      "<pci busid=\"b\" class=\"0x030200\"/><pci busid=\"c\" "
      "class=\"0x020000\"/></pci></cpu></system>",
      "t.xml");
  EXPECT_EQ(topology.gpus.size(), 1U);
  EXPECT_EQ(topology.nics.size(), 1U);
  EXPECT_TRUE(has_finding(topology.findings, FindingKind::kUnknown, "NVLinks"));
  const NcclTopology bare =
      parse_nccl_topology("<system><cpu numaid=\"0\"><pci busid=\"a\"/></cpu></system>", "t.xml");
  EXPECT_EQ(bare.pci_devices, 1);
  EXPECT_TRUE(has_finding(bare.findings, FindingKind::kUnknown, "0 GPUs identified"));
}

TEST(NcclTopology, XgmiSquareHasNoDiagonals) {
  std::string text = "<system version=\"2\"><cpu numaid=\"0\">";
  const char* links[] = {"p1 p2", "p0 p3", "p0 p3", "p1 p2"};
  for (int i = 0; i < 4; ++i) {
    const std::string both = links[i];
    text += "<pci busid=\"p" + std::to_string(i) + "\"><gpu dev=\"0\" rank=\"" + std::to_string(i) +
            "\"><xgmi target=\"" + both.substr(0, 2) + "\" count=\"1\"/><xgmi target=\"" +
            both.substr(3) + "\" count=\"1\"/></gpu></pci>";
  }
  const NcclTopology topology = parse_nccl_topology(text + "</cpu></system>", "t.xml");
  EXPECT_EQ(topology.gpu_hops[0][1].kind, HopKind::kXgmi);
  EXPECT_EQ(topology.gpu_hops[0][3].text(), "PHB");
  EXPECT_EQ(topology.gpu_hops[1][2].text(), "PHB");
}

TEST(NcclXml, HostileFilesAreRefused) {
  const auto refusal = [](const std::string& text) {
    return error_of([&] { parse_nccl_topology(text, "t.xml"); });
  };
  EXPECT_THAT(refusal("<!DOCTYPE x [<!ENTITY a \"b\">]><system/>"),
              HasSubstr("t.xml:1:1: a document"));
  std::string deep = "<system>";
  for (int i = 0; i < 100'000; ++i) deep += "<pci>";
  EXPECT_THAT(refusal(deep), HasSubstr("nested deeper than 64"));
  EXPECT_THAT(refusal("<system>\n<cpu"), HasSubstr("t.xml:2:"));
  EXPECT_THAT(refusal("<graphs/>"), HasSubstr("<graphs>, not <system>"));
  EXPECT_THAT(refusal("<system><cpu><pci><gpu><nvlink target=\"a\" count=\"-3\"/></gpu></pci></cpu>"
                      "</system>"),
              HasSubstr("count \"-3\""));
}

TEST(NcclGraphs, ChannelsInOrder) {
  const NcclGraphs graphs = parse_nccl_graphs(
      "<graphs version=\"1\"><graph id=\"0\" pattern=\"4\" nchannels=\"1\" speedintra=\"20\" "
      "typeintra=\"NVL\"><channel><net dev=\"0\"/><gpu dev=\"2\"/><gpu "
      "dev=\"0\"/></channel></graph>"
      "</graphs>",
      "g.xml");
  ASSERT_EQ(graphs.graphs.size(), 1U);
  EXPECT_EQ(graphs.graphs[0].pattern_name, "ring");
  EXPECT_EQ(graphs.graphs[0].speed_intra, 20);
  EXPECT_THAT(graphs.graphs[0].channels[0].gpus, ElementsAre(2, 0));
  EXPECT_THAT(error_of([] {
                parse_nccl_graphs("<graphs><graph id=\"0\" nchannels=\"2\"/></graphs>", "g.xml");
              }),
              HasSubstr("states 2 channels and has 0"));
}

std::string test_log(const std::string& header, const std::string& rows) {
  return "# nThread 1 nGpus 1 validation: 1\n#\n# Using devices\n"
         "#  Rank  0 Group  0 Pid  7 on   east device  0 [0000:01:00] Some GPU\n"
         "#  Rank  1 Group  0 Pid  8 on   west device  3 [0000:02:00] Some GPU\n#\n" +
         header + rows;
}
const char kHeader[] =
    "#       size         count    type   redop   root     time   algbw   busbw #wrong     time   "
    "algbw   busbw #wrong\n";

TEST(NcclTests, RowsRanksAndPeaks) {
  const NcclTestsLog log = parse_nccl_tests(
      "# Collective test starting: all_gather_perf\n" +
          test_log(kHeader,
                   "host:1:2 [0] NCCL INFO something\n"
                   "  1024  128  float  none  -1  10.0  0.10  0.05  0  11.0  0.09  0.05  N/A\n"
                   "  2048  256  float  none  -1  10.0  0.20  0.10  0  11.0  0.19  0.09  N/A\n"
                   "# Avg bus bandwidth    : 0.0725\n"),
      "n.log");
  ASSERT_EQ(log.runs.size(), 1U);
  const CollectiveRun& run = log.runs[0];
  EXPECT_EQ(run.collective, "all_gather");
  EXPECT_FALSE(run.is_inferred);
  EXPECT_EQ(run.hosts(), 2);
  EXPECT_EQ(run.ranks[1].device, 3);
  EXPECT_EQ(run.ranks[1].gpu, "Some GPU");
  EXPECT_EQ(run.peak(false)->size_bytes, 2048);
  EXPECT_EQ(run.peak(true)->in_place->busbw, 0.09);
  EXPECT_TRUE(run.is_checked());
  EXPECT_EQ(run.wrong(), 0);
  EXPECT_FALSE(has_finding(log.findings, FindingKind::kIgnored, "average"));
}

TEST(NcclTests, SeveralRunsInOneFileAndColumnsThatAreBlank) {
  const std::string blank_redop = "  4096  64  float  5.0  0.80  0.40  N/A  5.0  0.80  0.40  N/A\n";
  const NcclTestsLog log = parse_nccl_tests(
      "prose\n```\n" + test_log(kHeader, blank_redop) + "```\nmore prose\n" +
          test_log(kHeader,
                   "  4096  1024  float  sum  -1  5.0  0.80  0.80  0  5.0  0.80  0.80  0\n"),
      "n.md");
  ASSERT_EQ(log.runs.size(), 2U);
  EXPECT_EQ(log.runs[0].collective, "alltoall");
  EXPECT_TRUE(log.runs[0].is_inferred);
  EXPECT_FALSE(log.runs[0].is_checked());
  EXPECT_EQ(log.runs[1].collective, "all_reduce");
}

TEST(NcclTests, WrongResultsAndMissingRowsAreSaid) {
  const NcclTestsLog log = parse_nccl_tests(
      test_log(kHeader,
               "  4096  1024  float  sum  -1  5.0  0.80  0.80  7  5.0  0.80  0.80  0\n"
               "# Avg bus bandwidth    : 3.0\n"),
      "n.log");
  EXPECT_EQ(log.runs[0].wrong(), 7);
  EXPECT_TRUE(has_finding(log.findings, FindingKind::kFound, "WRONG RESULTS: 7"));
  EXPECT_TRUE(has_finding(log.findings, FindingKind::kIgnored, "some are missing"));
  EXPECT_THAT(error_of([] { parse_nccl_tests(test_log(kHeader, ""), "n.log"); }),
              HasSubstr("no row follows"));
  EXPECT_THAT(
      error_of([] { parse_nccl_tests(test_log(kHeader, " 4096 1024 float 5.0\n"), "n.log"); }),
      HasSubstr("n.log:8: a row with too few columns"));
}

TEST(NcclInfo, MixedProcessesRingsAndTrees) {
  const NcclInfoLog log = parse_nccl_info(
      "east:10:11 [0] NCCL INFO comm 0x1 rank 0 nranks 2 cudaDev 0 nvmlDev 5 busId 1a000 - Init "
      "START\n"
      "west:20:21 [1] NCCL INFO comm 0x2 rank 1 nranks 2 cudaDev 1 nvmlDev 6 busId 2b000 - Init "
      "START\n"
      "east:10:11 [0] NCCL INFO Channel 00/01 :    0   1\n"
      "east:10:11 [0] NCCL INFO Channel 00/0 : 0[5] -> 1[6] via P2P/IPC\n"
      "east:10:11 [0] NCCL INFO Connected all rings\n"
      "west:20:21 [1] NCCL INFO Channel 00/0 : 1[6] -> 0[5] via P2P/IPC\n"
      "east:10:11 [0] NCCL INFO Channel 00/0 : 0[5] -> 1[6] via P2P/read\n"
      "step 17 loss 2.5\n"
      "west:20:21 [1] NCCL INFO 1 coll channels, 0 nvls channels, 2 p2p channels, 1 p2p channels "
      "per peer\n",
      "i.log");
  EXPECT_EQ(log.ranks, 2);
  EXPECT_EQ(log.nodes, 2);
  EXPECT_EQ(log.rank_of.at(0).nvml_dev, 5);
  EXPECT_EQ(log.rank_of.at(1).bus_id, "2b000");
  EXPECT_THAT(log.ring_of_channel.at(0), ElementsAre(0, 1));
  EXPECT_TRUE(log.has_whole_rings());
  EXPECT_EQ(log.ring_hops.size(), 2U) << "one of each process before its rings are connected";
  EXPECT_EQ(log.tree_hops.size(), 1U);
  EXPECT_EQ(log.p2p_channels, 2);
  EXPECT_EQ(log.p2p_per_peer, 1);
}

TEST(NcclInfo, CutLogsSaySo) {
  const NcclInfoLog log = parse_nccl_info(
      "NCCL INFO comm 0x… rank 0 nRanks 12 nNodes 3 localRanks 4\n"
      "NCCL INFO Channel 00/04 :    0   3   2   1   4 …\n"
      "NCCL INFO Using network Socket\n"
      "NCCL INFO Channel 01/0 : 11[1] -> 0[0",
      "i.log");
  EXPECT_EQ(log.ranks, 12);
  EXPECT_EQ(log.nodes, 3);
  EXPECT_EQ(log.channels, 4);
  EXPECT_THAT(log.ring_of_channel.at(0), ElementsAre(0, 3, 2, 1, 4));
  EXPECT_FALSE(log.has_whole_rings());
  EXPECT_TRUE(has_finding(log.findings, FindingKind::kIgnored, "the last line is cut"));
  EXPECT_THAT(error_of([] { parse_nccl_info("hello\n", "i.log"); }), HasSubstr("NCCL_DEBUG=INFO"));
}

TEST(NcclInfo, WhatALineWithoutAnEndMayHaveLostIsNotTaken) {
  const std::string head =
      "NCCL INFO comm 0x1 rank 0 nranks 12 busId 1a\n"
      "NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM/read\n";
  const NcclInfoLog ring = parse_nccl_info(head + "NCCL INFO Channel 00/04 : 0 3 11 1", "i.log");
  EXPECT_THAT(ring.ring_of_channel.at(0), ElementsAre(0, 3, 11)) << "1 may begin 10";
  const std::string hop = "NCCL INFO Channel 00/0 : 1[1] -> 2[2] via P2P/";
  EXPECT_EQ(parse_nccl_info(head + hop + "CU", "i.log").ring_hops.size(), 1U);
  EXPECT_EQ(parse_nccl_info(head + hop + "CUMEM/read", "i.log").ring_hops.size(), 2U);
}

TEST(NcclInfo, RanksAreNamedWithTheirGpusHostByHost) {
  const NcclInfoLog log = parse_nccl_info(
      "a:1:2 [0] NCCL INFO comm 0x1 rank 0 nranks 2 cudaDev 0 nvmlDev 5 busId 1a\n"
      "b:3:4 [0] NCCL INFO comm 0x2 rank 1 nranks 2 cudaDev 0 nvmlDev 6 busId 1b\n",
      "i.log");
  EXPECT_TRUE(has_finding(log.findings, FindingKind::kFound, "a: rank 0 on GPU 5"));
  EXPECT_TRUE(has_finding(log.findings, FindingKind::kFound, "b: rank 1 on GPU 6"));
  const NcclInfoLog bare = parse_nccl_info("NCCL INFO Bootstrap : Using eth0\n", "i.log");
  EXPECT_TRUE(has_finding(bare.findings, FindingKind::kUnknown, "how many ranks"));
}

}  // namespace
}  // namespace ring
