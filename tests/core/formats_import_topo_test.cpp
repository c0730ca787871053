#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "core/formats/import/topo_matrix.h"
#include "tests/core/formats_testing.h"

namespace ring {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

TopoMatrix matrix_of(const std::string& text) { return parse_topo_matrix(text, "topo.txt"); }

std::string hop(const TopoMatrix& matrix, size_t a, size_t b) { return matrix.hops[a][b].text(); }

std::string refusal(const std::string& text) {
  return error_of([&] { matrix_of(text); });
}

TEST(TopoMatrix, ReadsPromptsTabsColoursAndLegends) {
  const TopoMatrix matrix = matrix_of(
      "me@box:~$ nvidia-smi topo -m\n"
      "\t\x1b[4mGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\n"
      "GPU0\t X \tNV6\tPXB\t0-7,16-23\t0,4-6\t\tN/A\n"
      "GPU1\tNV6\t X \tSYS\t8-15\t1\t\tN/A\n"
      "NIC0\tPXB\tSYS\t X \t\t\t\t\r\n"
      "\nLegend:\n\n  NV#  = Connection traversing a bonded set of # NVLinks\n"
      "\nNIC Legend:\n\n  NIC0: mlx5_7\n");
  ASSERT_EQ(matrix.devices.size(), 3U);
  EXPECT_EQ(hop(matrix, 0, 1), "NV6");
  EXPECT_EQ(hop(matrix, 2, 0), "PXB");
  EXPECT_EQ(hop(matrix, 1, 2), "SYS");
  EXPECT_EQ(matrix.devices[0].cpu_affinity, "0-7,16-23");
  EXPECT_THAT(matrix.devices[0].numa, ElementsAre(0, 4, 5, 6));
  EXPECT_THAT(matrix.devices[1].numa, ElementsAre(1));
  EXPECT_EQ(matrix.devices[2].alias, "mlx5_7");
  EXPECT_EQ(matrix.devices[2].kind, TopoDeviceKind::kNic);
}

TEST(TopoMatrix, NicColumnsMayStandInAnyOrderAndGpusMayBeOne) {
  const TopoMatrix matrix = matrix_of(
      "        GPU0  mlx5_1  mlx5_0  CPU Affinity\n"
      "GPU0     X    PHB     PIX     0\n"
      "mlx5_1  PHB    X      SYS\n"
      "mlx5_0  PIX   SYS      X");
  EXPECT_EQ(matrix.of_kind(TopoDeviceKind::kGpu).size(), 1U);
  EXPECT_EQ(matrix.devices[1].name, "mlx5_1");
  EXPECT_EQ(hop(matrix, 0, 1), "PHB");
  EXPECT_EQ(hop(matrix, 0, 2), "PIX");
  EXPECT_TRUE(has_finding(matrix.findings, FindingKind::kFound, "GPU0 is nearest to mlx5_0 (PIX)"));
  EXPECT_EQ(matrix.devices[0].cpu_affinity, "0");
}

TEST(TopoMatrix, OtherDevicesAreNeitherGpuNorNic) {
  const TopoMatrix matrix = matrix_of(
      "        GPU0    GPU1    NVMe0\n"
      "GPU0     X      NV3     PIX\n"
      "GPU1    NV3      X      SYS\n");
  EXPECT_EQ(matrix.of_kind(TopoDeviceKind::kGpu).size(), 2U);
  EXPECT_EQ(matrix.of_kind(TopoDeviceKind::kNic).size(), 0U);
  EXPECT_EQ(matrix.of_kind(TopoDeviceKind::kOther).size(), 1U);
  EXPECT_TRUE(has_finding(matrix.findings, FindingKind::kUnknown, "NUMA"));
  EXPECT_TRUE(has_finding(matrix.findings, FindingKind::kFound, "2 GPUs, 0 NICs"));
  EXPECT_TRUE(has_finding(matrix.findings, FindingKind::kFound, "NV3: 1 pair of GPUs"));
  EXPECT_FALSE(has_finding(matrix.findings, FindingKind::kFound, "is nearest to"));
}

TEST(TopoMatrix, ACutBetweenTwoRowsIsRefusedWherePairsAreThenUnknown) {
  const std::string rows = "\tGPU0\tGPU1\tGPU2\tNIC0\nGPU0\t X \tNV2\tSYS\tPIX\n";
  EXPECT_THAT(refusal(rows), HasSubstr("neither GPU1 nor GPU2 has a row"));
  const TopoMatrix known = matrix_of(rows + "GPU1\tNV2\t X \tSYS\tSYS\n");
  EXPECT_EQ(hop(known, 2, 1), "SYS") << "the last row and those of NICs say nothing new";
}

TEST(TopoMatrix, PeerAccessIsNotALinkClass) {
  const TopoMatrix alone = matrix_of(" \tGPU0\tGPU1\n GPU0\tX\tNS\n GPU1\tNS\tX\n");
  EXPECT_FALSE(alone.has_links());
  EXPECT_EQ(alone.peer_access[0][1], PeerAccess::kNo);
  EXPECT_TRUE(has_finding(alone.findings, FindingKind::kUnknown, "over which links"));
  const TopoMatrix both = matrix_of(
      "\tGPU0\tGPU1\nGPU0\t X \tPHB\nGPU1\tPHB\t X \n\ntext between\n\n"
      " \tGPU0\tGPU1\n GPU0\tX\tGNS\n GPU1\tGNS\tX\n");
  EXPECT_EQ(hop(both, 0, 1), "PHB");
  EXPECT_EQ(both.devices.size(), 2U);
  EXPECT_EQ(both.peer_access[1][0], PeerAccess::kNo);
  EXPECT_TRUE(has_finding(both.findings, FindingKind::kFound, "host memory"));
}

TEST(TopoMatrix, RocmWeightsAreNotLinkClasses) {
  const TopoMatrix matrix = matrix_of(
      "=== ROCm System Management Interface ===\n"
      "=== Weight between two GPUs ===\n       GPU0  GPU1\nGPU0   0     15\nGPU1   15    0\n\n"
      "=== Hops between two GPUs ===\n       GPU0  GPU1\nGPU0   0     1\nGPU1   1     0\n\n"
      "=== Link Type between two GPUs ===\n       GPU0  GPU1\nGPU0   0     XGMI\nGPU1   XGMI  0\n\n"
      "GPU[0]\t: (Topology) Numa Node: 2\n");
  EXPECT_EQ(matrix.tool, "rocm-smi");
  EXPECT_EQ(hop(matrix, 0, 1), "XGMI");
  EXPECT_EQ(matrix.rocm_weights[1][0], 15);
  EXPECT_EQ(matrix.rocm_hops[0][1], 1);
  EXPECT_THAT(matrix.devices[0].numa, ElementsAre(2));
}

TEST(TopoMatrix, RefusesWhatCannotBeTrusted) {
  EXPECT_THAT(refusal("nothing of the kind\n"), HasSubstr("topo.txt: no topology matrix"));
  EXPECT_THAT(refusal("\tGPU0\tGPU1\nGPU0\t X \tNV2\nGPU1\tSYS\t X \n"),
              HasSubstr("topo.txt:3: GPU1 to GPU0 is SYS, but back it is NV2"));
  EXPECT_THAT(
      refusal("\tGPU0\tGPU1\nGPU0\t X \tNV2\nGPU1\tNV2"),
      AllOf(HasSubstr("topo.txt:3: the row of GPU1 has 1 cells"), HasSubstr("ends within")));
  EXPECT_THAT(refusal("\tGPU0\tGPU1\nGPU0\t X \tFAST\nGPU1\tFAST\t X \n"),
              HasSubstr("topo.txt:2: \"FAST\" is not a link class"));
  EXPECT_THAT(refusal("\tGPU0\tGPU1\nGPU0\tPIX\tPIX\nGPU1\tPIX\t X \n"),
              HasSubstr("PIX between GPU0 and GPU0"));
  EXPECT_THAT(refusal(std::string("\tGPU0\0", 6)), HasSubstr("not a text file"));
}

/// Any symmetric matrix, printed with any mix of blanks, comes back.
RC_GTEST_PROP(TopoMatrix, AnyMatrixComesBack, ()) {
  const auto count = *rc::gen::inRange<size_t>(1, 12);
  const std::vector<std::string> classes{"NV1", "NV18", "PIX", "PXB", "PHB", "NODE", "SYS"};
  std::vector<std::vector<std::string>> cells(count, std::vector<std::string>(count, "X"));
  for (size_t i = 0; i < count; ++i) {
    for (size_t j = 0; j < i; ++j) {
      cells[i][j] = cells[j][i] = *rc::gen::elementOf(classes);
    }
  }
  const std::vector<std::string> blanks{" ", "\t", "   ", " \t "};
  std::string text;
  for (size_t j = 0; j < count; ++j)
    text += *rc::gen::elementOf(blanks) + "GPU" + std::to_string(j);
  for (size_t i = 0; i < count; ++i) {
    text += "\nGPU" + std::to_string(i);
    for (size_t j = 0; j < count; ++j) text += *rc::gen::elementOf(blanks) + cells[i][j];
  }
  const TopoMatrix matrix = parse_topo_matrix(text, "f");
  RC_ASSERT(matrix.devices.size() == count);
  for (size_t i = 0; i < count; ++i) {
    for (size_t j = 0; j < count; ++j) RC_ASSERT(hop(matrix, i, j) == cells[i][j]);
  }
}

}  // namespace
}  // namespace ring
